// Searches under a limit on activation memory.
#include "sim/search/search.h"

#include <fmt/format.h>
#include <optional>
#include <variant>

#include "app/memory_limit.h"
#include "python/bindings.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/schedules.h"
#include "sim/search/found_metrics.h"

namespace pipesim {
namespace {

// The keys of `pipesim search --csv`, and the order itself.
py::dict dict_of(const SearchResult& result, Bytes unit) {
  py::dict row;
  row["limit_bytes"] = result.limit.value();
  row["limit_over_p_microbatches"] = result.limit / unit;
  const Found& best = *result.best;
  row["schedule"] = best.schedule;
  row["refined"] = best.refined;
  row["chunks"] = best.problem.shape.chunks;
  for (const FoundMetric& metric : kFoundMetrics) {
    row[py::str(std::string(metric.name))] = metric.of(best);
  }
  row["registered_schedule"] = py::none();
  row["registered_cost_seconds"] = py::none();
  if (result.registered) {
    row["registered_schedule"] = result.registered->schedule;
    row["registered_cost_seconds"] = result.registered->cost.value();
  }
  row["bound_seconds"] = result.bound.value();
  row["offload_chunks"] = offload_chunks_of(best.choice);
  row["recompute_chunks"] = recompute_chunks_of(best.choice);
  row["microbatch_order"] = best.microbatch_order;
  row["passes"] = passes_of(*best.program);
  return row;
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

// The question beside the scenario.
struct Asked {
  std::string memory_limit;
  std::optional<int> points;  // of a frontier
  SearchOptions options;
};

// Rows of what is found, and the reasons of what was left out.
py::tuple run_search(const Scenario& scenario, Asked asked, const py::object& progress) {
  check_names(asked.options.schedules, scenario);
  std::atomic<bool> stop = false;
  std::atomic<int> done = 0;
  asked.options.refinement.stop = [&stop] { return stop.load(); };
  asked.options.progress = [&done](const SearchProgress& now) {
    if (now.step == SearchProgress::Step::kLimits) done = now.done;
  };
  asked.options.limits = asked.points.value_or(1);
  std::variant<double, Bytes> limit;
  if (!asked.points) {
    limit = limit_of(asked.memory_limit, scenario);
    std::visit([&asked](auto of) { asked.options.order_within = of; }, limit);
  }
  struct Outcome {
    std::vector<SearchResult> results;
    std::vector<std::string> left_out;
    Bytes unit;
  };
  const auto work = [&] {
    const Search search(scenario, asked.options);
    Outcome outcome{{}, search.left_out(), search.unit()};
    if (asked.points) {
      outcome.results = search.frontier(*asked.points);
    } else {
      const auto* bytes = std::get_if<Bytes>(&limit);
      const double* factor = std::get_if<double>(&limit);
      outcome.results.push_back(search.at(bytes != nullptr ? *bytes : *factor * search.unit()));
    }
    return outcome;
  };
  const Outcome outcome = heard_by_python(stop, work, [&] {
    if (!progress.is_none() && asked.points) progress(done.load(), *asked.points);
  });
  py::list rows;
  for (const SearchResult& result : outcome.results) {
    if (result.best) rows.append(dict_of(result, outcome.unit));
  }
  return py::make_tuple(rows, outcome.left_out);
}

}  // namespace

void bind_search(py::module_& module) {
  module.def(
      "search",
      [](const Scenario& scenario, std::string memory_limit, std::optional<int> points,
         std::vector<std::string> schedules, int max_chunks, int max_splits, bool offload,
         bool recompute, bool refine, std::optional<double> effort, std::uint64_t seed,
         double max_passes, const py::object& progress) {
        SearchOptions options{.max_chunks = max_chunks,
                              .max_splits = max_splits,
                              .schedules = std::move(schedules),
                              .offload = offload,
                              .recompute = recompute,
                              .refine = refine,
                              .refinement = {},
                              .max_passes = max_passes};
        options.refinement.seed = seed;
        options.refinement.effort =
            effort.value_or(points ? kFrontierEffort : RefineOptions{}.effort);
        return run_search(scenario, {std::move(memory_limit), points, std::move(options)},
                          progress);
      },
      py::arg("scenario"), py::arg("memory_limit"), py::arg("points"), py::arg("schedules"),
      py::arg("max_chunks"), py::arg("max_splits"), py::arg("offload"), py::arg("recompute"),
      py::arg("refine"), py::arg("effort"), py::arg("seed"), py::arg("max_passes"),
      py::arg("progress"));
}

}  // namespace pipesim
