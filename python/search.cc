// Searches under a limit on activation memory.
#include <optional>

#include "library/searching.h"
#include "python/bindings.h"

namespace pipesim {
namespace {

// The keys of `pipesim search --csv`, and the order itself.
py::dict dict_of(const api::Found& found) {
  py::dict row;
  row["limit_bytes"] = found.limit_bytes;
  row["limit_over_p_microbatches"] = found.limit_over_p_microbatches;
  row["schedule"] = found.schedule;
  row["refined"] = found.refined;
  row["chunks"] = found.chunks;
  row["cost_seconds"] = found.cost_seconds;
  row["makespan_from_rest_seconds"] = found.makespan_from_rest_seconds;
  row["bubble_rate"] = found.bubble_rate;
  row["bubble_rate_busiest"] = found.bubble_rate_busiest;
  row["peak_activation_bytes"] = found.peak_activation_bytes;
  row["registered_schedule"] = found.registered_schedule;
  row["registered_cost_seconds"] = found.registered_cost_seconds;
  row["bound_seconds"] = found.bound_seconds;
  row["offload_chunks"] = found.offload_chunks;
  row["recompute_chunks"] = found.recompute_chunks;
  row["microbatch_order"] = found.microbatch_order;
  row["passes"] = found.passes;
  return row;
}

// Rows of what is found, and the reasons of what was left out.
py::tuple run_search(const Scenario& scenario, SearchAsked asked, const py::object& progress) {
  std::atomic<bool> stop = false;
  std::atomic<int> done = 0;
  asked.options.refinement.stop = [&stop] { return stop.load(); };
  asked.options.progress = [&done](const SearchProgress& now) {
    if (now.step == SearchProgress::Step::kLimits) done = now.done;
  };
  const api::Searched all = heard_by_python(
      stop, [&] { return searched(scenario, asked); },
      [&] {
        if (!progress.is_none() && asked.points) progress(done.load(), *asked.points);
      });
  py::list rows;
  for (const api::Found& found : all.found) rows.append(dict_of(found));
  return py::make_tuple(rows, all.left_out);
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
