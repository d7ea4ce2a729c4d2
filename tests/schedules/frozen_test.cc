// Frozen layers: W that takes no time, on some stages or on all.
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::frozen_test {
namespace {

Scenario frozen(const std::string& schedule, const std::string& weight) {
  return read_scenario(YamlSource("test", "schedule: " + schedule + R"(
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, per: device, forward: 10 ms, backward_input: 12 ms, backward_weight: )" +
                                              weight + R"(,
       transfer: 0.4 ms, overlapped: 30 ms, copy_out: 6 ms, copy_in: 6 ms}
memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}
offload: )" + (find_schedule(schedule)->offloads() ? "{plan: best}" : "false") +
                                              "\n"));
}

Result run(Scenario scenario, EngineKind engine) {
  scenario.engine = engine;
  return simulate(prepare_first(std::move(scenario)));
}

// Its device works as long as its passes say, and both engines agree.
TEST(Frozen, LayersRunUnderEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    for (const std::string weight :
         {"0 ms", "[0 ms, 8 ms, 8 ms, 8 ms]", "[8 ms, 8 ms, 0 ms, 0 ms]"}) {
      SCOPED_TRACE(schedule->name + " " + weight);
      const Scenario scenario = frozen(schedule->name, weight);
      const Result replay = run(scenario, EngineKind::kReplay);
      const bool first_is_frozen = weight[0] == '0' || weight[1] == '0';
      const Seconds work(12 * (first_is_frozen ? 0.022 : 0.030));
      EXPECT_GE(replay.report.iteration.value(), work.value());
      EXPECT_LE(replay.report.iteration.value(), 4 * work.value() + 0.2);
      EXPECT_NEAR(run(scenario, EngineKind::kSimGrid).report.iteration.value(),
                  replay.report.iteration.value(), 1e-12);
    }
  }
}

// Where no W takes time, 1F1B loses nothing by having B and W as one.
TEST(Frozen, LayersLeaveNothingForWToFill) {
  const auto seconds = [](const char* schedule) {
    return run(frozen(schedule, "0 ms"), EngineKind::kReplay).report.iteration.value();
  };
  EXPECT_NEAR(seconds("zb-h1"), seconds("1f1b"), 1e-12);
  EXPECT_NEAR(seconds("zb-2p"), seconds("gpipe"), 1e-12);
}

}  // namespace
}  // namespace pipesim::frozen_test
