#include "sim/sweep/sweep.h"

#include <pipesim/sweep.h>
#include <sstream>

#include "library/errors.h"
#include "library/metrics.h"
#include "library/scenario_text.h"
#include "library/within.h"
#include "sim/sweep/build.h"
#include "sim/sweep/point.h"
#include "sim/sweep/results.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/store.h"
#include "sim/sweep/workers.h"

namespace pipesim {
namespace {

void fill(api::SweepPoint& point, const PointResult& result) {
  const auto& [schedule, options, recompute, offload, memory_limit] = result.choice;
  point.schedule = schedule;
  point.options = options;
  point.recompute = recompute;
  point.offload = offload;
  point.memory_limit = memory_limit;
  point.done = result.outcome == PointResult::Outcome::kDone;
  if (point.done) point.metrics = public_metrics(result.metrics);
  point.reason = result.reason;
}

api::Sweep public_sweep(const Sweep& sweep, const ResultStore& store, const SweepRun& run) {
  std::ostringstream json;
  write_sweep_json(json, sweep, store, run, PIPESIM_VERSION);
  api::Sweep table{sweep.keys(), std::vector<api::SweepPoint>(sweep.points()), json.str()};
  store.visit(ResultStore::Rows::kAll,
              [&](const PointResult& result) { fill(table.points[result.point], result); });
  for (const auto& [number, why] : run.lost) table.points[number].reason = why;
  for (std::uint32_t i = 0; i < sweep.points(); ++i) {
    table.points[i].values = sweep.values(sweep.setting(i));
  }
  return table;
}

SweepHooks hooks_of(const api::Watch& watch) {
  SweepHooks hooks;
  hooks.stopped = [&stop = stop_of(watch)] { return stop.load(); };
  if (watch.progress) {
    hooks.progress = [&watch](const SweepProgress& now) {
      watch.progress(now.before + now.evaluated, now.points);
    };
  }
  return hooks;
}

}  // namespace

api::Sweep api::sweep_file(const std::string& file, const std::string& folder, int processes,
                           const Changes& changes, const Watch& watch) {
  return watched(watch, [&] {
    within("processes", processes, kSweepProcesses);
    const auto sweep = pipesim::Sweep::read(file, {file, 0, 0, ""}, overrides_of(changes));
    Evaluator evaluate(sweep);
    LocalWorkers workers(processes,
                         [&evaluate](std::uint32_t point) { return to_bytes(evaluate(point)); });
    ResultStore store(folder, sweep, build_of_program(PIPESIM_VERSION), {folder, 0, 0, ""});
    const SweepRun run = run_sweep(sweep, store, workers, hooks_of(watch));
    if (run.stopped) throw Stopped();
    return public_sweep(sweep, store, run);
  });
}

}  // namespace pipesim
