#include <mutex>
#include <pipesim/search.h>

#include "library/errors.h"
#include "library/read_scenario.h"
#include "library/searching.h"
#include "library/within.h"

namespace pipesim {
namespace {

SearchOptions options_of(const api::SearchOptions& asked, double effort, const api::Watch& watch) {
  SearchOptions options{
      .max_chunks = within("max_chunks", asked.max_chunks, kSearchedChunks),
      .max_splits = within("max_splits", asked.max_splits, kSearchedSplits),
      .schedules = asked.schedules,
      .offload = asked.offload,
      .recompute = asked.recompute,
      .refine = asked.refine,
      .refinement = {},
  };
  options.refinement.seed = asked.seed;
  options.refinement.effort = within("effort", asked.effort.value_or(effort), kRefinedPasses);
  options.refinement.stop = [&stop = stop_of(watch)] { return stop.load(); };
  return options;
}

api::Searched run(const api::Scenario& scenario, SearchAsked asked, const api::Watch& watch) {
  std::mutex one_at_a_time;
  asked.options.progress = [&](const SearchProgress& now) {
    if (!watch.progress || now.step != SearchProgress::Step::kLimits) return;
    const std::lock_guard lock(one_at_a_time);
    watch.progress(static_cast<std::size_t>(now.done), static_cast<std::size_t>(now.all));
  };
  api::Searched found = searched(*scenario.read().scenario(), std::move(asked));
  check_stop();
  return found;
}

}  // namespace

namespace api {

Searched search(const Scenario& scenario, const std::string& memory_limit,
                const SearchOptions& options, const Watch& watch) {
  return watched(watch, [&] {
    const auto asked = options_of(options, RefineOptions{}.effort, watch);
    return run(scenario, {memory_limit, {}, asked}, watch);
  });
}

Searched search_frontier(const Scenario& scenario, int points, const SearchOptions& options,
                         const Watch& watch) {
  return watched(watch, [&] {
    const auto asked = options_of(options, kFrontierEffort, watch);
    return run(scenario, {"", within("points", points, kFrontierPoints), asked}, watch);
  });
}

}  // namespace api
}  // namespace pipesim
