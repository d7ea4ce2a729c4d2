// The `offload` section, the schedules that offload, and what copies cost.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/read_scenario.h"
#include "sim/scenario/simulate.h"

namespace pipesim {
namespace {

const std::string kGiven = R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms,
       copy_out: 6 ms, copy_in: 6 ms, copy_solo_factor: 0.7}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)";
const std::string kModelled = R"(
schedule: po-f
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 8, virtual_pipeline_model_parallel_size: 4}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
recompute: pointwise
)";

Simulation run(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  const Scenario scenario = read_scenario(YamlSource("test", text, parsed));
  return simulate(scenario, scenario.schedules.front());
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    (void)run(text, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioOffload, LowersThePeakOfAnyScheduleAtNoCost) {
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"}) {
    const std::string name = std::string("schedule=") + schedule;
    const Report kept = run(kGiven, {name}).report;
    const Report offloaded = run(kGiven, {name, "offload=true"}).report;
    EXPECT_NEAR(offloaded.iteration / kept.iteration, 1, 1e-12) << schedule;
    EXPECT_LT(offloaded.peak_activation, kept.peak_activation) << schedule;
    const Report shared = run(kGiven, {name, "offload.devices_per_link=4"}).report;
    EXPECT_GE(shared.peak_activation, offloaded.peak_activation) << schedule;
  }
}

TEST(ScenarioOffload, TakesBytesAndBandwidthFromModelAndCluster) {
  const Simulation offloaded = run(kModelled);
  const Simulation kept = run(kModelled, {"schedule=gis-h"});
  EXPECT_LT(offloaded.report.peak_activation, kept.report.peak_activation);
  EXPECT_EQ(offloaded.problem.devices_per_host_link, 2);
  const StageCost& stage = offloaded.problem.stage(9);
  EXPECT_DOUBLE_EQ(stage.copy_out.value(), stage.activation.value() / 21e9);
  EXPECT_DOUBLE_EQ(offloaded.problem.copy_alone_factor, 21 / 35.2);
  const Problem divided = run(kModelled, {"parallel.tensor_model_parallel_size=4"}).problem;
  EXPECT_EQ(divided.devices_per_host_link, 1) << "the GPUs of a switch hold parts of one stage";
  EXPECT_DOUBLE_EQ(divided.stage(9).copy_out.value(),
                   2 * divided.stage(9).activation.value() / 21e9)
      << "and copy at the same time";
  EXPECT_EQ(run(kModelled, {"optimizer.sync=post_validation"}).problem.copy_alone_factor, 1);
}

TEST(ScenarioOffload, NeedsTheSecondsOfCopies) {
  const std::string unknown =
      "cost={kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}";
  EXPECT_NE(refusal(kGiven, {"schedule=po-h", unknown}).find("cost.copy_out and cost.copy_in"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload=true", unknown}).find("cost.copy_out and cost.copy_in"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"cost={kind: given, forward: 1 ms, backward_input: 1 ms, "
                             "backward_weight: 1 ms, copy_out: 1 ms}"})
                .find("needs both 'copy_out' and 'copy_in'"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.chunk=1"}).find("chunks"), std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.chunks=2"}).find("but 1f1b has 1 per device"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"schedule=po-h", "offload.chunks=1"}).find("offload_chunks"),
            std::string::npos);
  for (const char* list : {"[1 ms, 2 ms]", "[]"}) {
    EXPECT_NE(
        refusal(kGiven, {"cost.per=stage", std::string("cost.copy_in=") + list}).find("expected"),
        std::string::npos)
        << list;
  }
}

}  // namespace
}  // namespace pipesim
