#include "library/searching.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "app/memory_limit.h"
#include "library/simulations.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/schedules.h"

namespace pipesim {
namespace {

api::Found public_found(const SearchResult& result, Bytes unit) {
  const Found& best = *result.best;
  api::Found found{.limit_bytes = result.limit.value(),
                   .limit_over_p_microbatches = result.limit / unit,
                   .schedule = best.choice.name,
                   .refined = best.refined,
                   .chunks = best.problem.shape.chunks,
                   .cost_seconds = best.cost.value(),
                   .makespan_from_rest_seconds = best.makespan.value(),
                   .time_seconds = best.time.value(),
                   .bubble_rate = best.bubble_rate,
                   .bubble_rate_busiest = best.bubble_rate_busiest,
                   .peak_activation_bytes = best.peak.value(),
                   .registered_schedule = {},
                   .registered_cost_seconds = {},
                   .bound_seconds = result.bound.value(),
                   .gap = result.gap(),
                   .offload_chunks = offload_chunks_of(best.choice),
                   .recompute_chunks = recompute_chunks_of(best.choice),
                   .microbatch_order = best.microbatch_order,
                   .passes = passes_of(*best.program)};
  if (result.registered) {
    found.registered_schedule = result.registered->choice.name;
    found.registered_cost_seconds = result.registered->cost.value();
  }
  return found;
}

void check_names(const std::vector<std::string>& names, const Scenario& scenario) {
  std::vector<std::string> valid = schedule_names();
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (choice.described || choice.program) valid.push_back(choice.name);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(valid, name) != valid.end()) continue;
    throw InputError({"schedules", 0, 0, ""},
                     fmt::format("unknown schedule '{}'{}", name, suggestion(name, valid)));
  }
}

// The limit on activations: a multiple of one microbatch's, or bytes.
std::variant<double, Bytes> limit_of(const std::string& text, const Scenario& scenario) {
  const Location where{"memory_limit", 1, 1, text};
  const auto limit = parse_memory_limit(text, where);
  if (std::holds_alternative<double>(limit)) return limit;
  return activation_limit(text, prepare_first(scenario), where);
}

std::vector<SearchResult> at_limits(const Search& search, const SearchAsked& asked,
                                    const std::variant<double, Bytes>& limit) {
  if (asked.points) return search.frontier(*asked.points);
  const double* factor = std::get_if<double>(&limit);
  const Bytes bytes = factor != nullptr ? *factor * search.unit() : std::get<Bytes>(limit);
  return {search.at(bytes)};
}

}  // namespace

api::Searched searched(const Scenario& scenario, SearchAsked asked) {
  check_names(asked.options.schedules, scenario);
  asked.options.limits = asked.points.value_or(1);
  std::variant<double, Bytes> limit;
  if (!asked.points) {
    limit = limit_of(asked.memory_limit, scenario);
    std::visit([&asked](auto of) { asked.options.order_within = of; }, limit);
  }
  const Search search(scenario, asked.options);
  api::Searched all{.found = {}, .left_out = search.left_out()};
  for (const SearchResult& result : at_limits(search, asked, limit)) {
    if (result.best) all.found.push_back(public_found(result, search.unit()));
  }
  return all;
}

}  // namespace pipesim
