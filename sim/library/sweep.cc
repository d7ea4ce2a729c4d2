#include "include/pipesim/sweep.h"

#include "sim/library/overrides.h"
#include "sim/sweep/build.h"
#include "sim/sweep/point.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/store.h"
#include "sim/sweep/sweep.h"
#include "sim/sweep/workers.h"

namespace pipesim {

SweepTable sweep_file(const std::string& file, const std::string& folder, int processes,
                      const std::vector<std::string>& overrides) {
  const Sweep sweep = Sweep::read(file, {file, 0, 0, ""}, parse_overrides(overrides));
  Evaluator evaluate(sweep);
  LocalWorkers workers(processes,
                       [&evaluate](std::uint32_t point) { return to_bytes(evaluate(point)); });
  ResultStore store(folder, sweep, build_of_program(PIPESIM_VERSION), {folder, 0, 0, ""});
  const SweepRun run = run_sweep(sweep, store, workers, {});
  SweepTable table{sweep.keys(), std::vector<SweepPoint>(sweep.points())};
  store.visit(ResultStore::Rows::kAll, [&](const PointResult& result) {
    SweepPoint& point = table.points[result.point];
    const auto& [schedule, options, recompute, offload, memory_limit] = result.choice;
    point.schedule = schedule;
    point.options = options;
    point.recompute = recompute;
    point.offload = offload;
    point.memory_limit = memory_limit;
    point.done = result.outcome == PointResult::Outcome::kDone;
    point.metrics = result.metrics;
    point.reason = result.reason;
  });
  for (const auto& [number, why] : run.lost) table.points[number].reason = why;
  for (std::uint32_t i = 0; i < sweep.points(); ++i) {
    table.points[i].values = sweep.values(sweep.setting(i));
  }
  return table;
}

}  // namespace pipesim
