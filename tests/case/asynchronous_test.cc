// Iterations that run into each other: pipedream and pipedream-2bw.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "tests/case/cases.h"

namespace pipesim::asynchronous_test {
namespace {

constexpr const char* kEqual = R"(
schedule: pipedream
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 6}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, optimizer: 5 ms}
memory: {kind: given, activation: 1 GiB, weight_stash: 0.4 GiB}
)";

Result run(const std::string& text, const Changes& changes = {}) {
  return simulate(prepare_first(read_changed(text, changes)));
}

double seconds(const Result& result) { return result.report.iteration.value(); }

TEST(Asynchronous, TakesWorkAndStepsAloneWhereStagesAreEqual) {
  EXPECT_NEAR(seconds(run(kEqual)), 6 * (0.030 + 0.005), 1e-12);
  EXPECT_NEAR(seconds(run(kEqual, {{"schedule", "pipedream-2bw"}})), 6 * 0.030 + 0.005, 1e-12);
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    const Result result = run(kEqual, {{"schedule", schedule}, {"cost.optimizer", "0 s"}});
    EXPECT_NEAR(result.report.bubble_rate, 0, 1e-12);
    EXPECT_NEAR(result.report.bubble_rate_makespan, 0, 1e-12);
    EXPECT_EQ(result.report.makespan, result.report.iteration);
  }
}

TEST(Asynchronous, KeepsAsManyMicrobatchesAsIn1F1B) {
  for (const char* schedule : {"pipedream", "pipedream-2bw", "1f1b"}) {
    const Result result = run(kEqual, {{"schedule", schedule}});
    for (int d = 0; d < 4; ++d) {
      EXPECT_EQ(result.report.devices[d].peak_activation, (4 - d) * kGiB) << schedule;
    }
  }
}

// The slowest stage sets the pace.
TEST(Asynchronous, HasThePeriodOfItsSlowestStage) {
  const Result result =
      run(kEqual, {{"cost.forward", "[10 ms, 10 ms, 16 ms, 10 ms]"}, {"cost.optimizer", "0 s"}});
  EXPECT_NEAR(seconds(result), 6 * 0.036, 1e-12);
  EXPECT_NEAR(result.report.devices[2].idle.value(), 0, 1e-12);
  const DeviceReport& other = result.report.devices[0];
  EXPECT_NEAR(other.idle.value(), 6 * 0.006, 1e-12);
  EXPECT_EQ(other.idle_by_cause[IdleCause::kWarmUp], Seconds(0));
  EXPECT_EQ(other.idle_by_cause[IdleCause::kCoolDown], Seconds(0));
}

TEST(Asynchronous, ChargesAllOfAGap) {
  const Result result = run(kEqual, {{"cost.transfer", "3 ms"}, {"perturb.jitter", "0.2"}});
  for (const DeviceReport& device : result.report.devices) {
    const Seconds charged =
        std::accumulate(device.idle_by_cause.begin(), device.idle_by_cause.end(), Seconds(0));
    EXPECT_NEAR(charged.value(), device.idle.value(), 1e-9);
  }
  EXPECT_GT(seconds(result), 6 * 0.035);
}

// A run of many iterations without a flush is one long iteration of 1F1B with steps in it.
TEST(Asynchronous, IsTheMiddleOfALongRun) {
  const Changes times{{"cost.forward", "[10 ms, 13 ms, 9 ms, 11 ms]"},
                      {"cost.transfer", "2 ms"},
                      {"cost.optimizer", "0 s"}};
  Changes once = times;
  once.insert(once.end(), {{"schedule", "1f1b"}, {"batch.num_microbatches", "600"}});
  Changes twice = once;
  twice.back().second = "1200";
  const double each = (seconds(run(kEqual, twice)) - seconds(run(kEqual, once))) / 100;
  EXPECT_NEAR(seconds(run(kEqual, times)), each, 1e-9);
}

TEST(Asynchronous, TakesFewMicrobatches) {
  Changes one{{"batch.num_microbatches", "1"}, {"parallel.pipeline_model_parallel_size", "32"}};
  EXPECT_NEAR(seconds(run(kEqual, one)), 0.035, 1e-12);
}

// Every iteration has the same microbatches.
TEST(Asynchronous, TakesUnequalMicrobatches) {
  const Result result = run(kEqual, {{"batch.factors", "[1, 2, 1, 0.5, 1, 0.5]"},
                                     {"parallel.pipeline_model_parallel_size", "1"},
                                     {"cost.optimizer", "0 s"}});
  EXPECT_NEAR(seconds(result), 6 * 0.030, 1e-12);
}

constexpr const char* kModelled = R"(
schedule: [1f1b, pipedream, pipedream-2bw]
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}
)";

TEST(Asynchronous, HoldsTheWeightsOfEveryVersion) {
  const auto scenario = std::make_shared<const Scenario>(read_changed(kModelled, {}));
  const auto all = prepare_all(scenario);
  const std::vector<DeviceMemory> once = all[0].get().memory->devices;
  const std::vector<DeviceMemory> pipedream = all[1].get().memory->devices;
  const std::vector<DeviceMemory> two = all[2].get().memory->devices;
  // Devices without embedding and output: all their parameters are layers'.
  for (const int d : {1, 2}) {
    EXPECT_EQ(pipedream[d].weights, (4 - d) * once[d].weights);
    EXPECT_EQ(two[d].weights, 2 * once[d].weights);
    EXPECT_EQ(two[d].optimizer, once[d].optimizer);
  }
  EXPECT_EQ(pipedream[3].weights, once[3].weights);
  // Embedding and output, too.
  EXPECT_GT(two[3].weights, 2 * once[3].weights);
}

TEST(Asynchronous, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const Changes& changes) -> std::string {
    try {
      (void)run(kEqual, changes);
    } catch (const InputError& error) {
      return error.message();
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({{"schedule", "1f1b"}, {"optimizer.sync", "asynchronous"}}),
            "optimizer.sync is asynchronous, which 1f1b is not: it keeps one version of weights; "
            "pipedream and pipedream-2bw keep more");
  EXPECT_EQ(refused({{"optimizer.sync", "asynchronous"}}), "");
  EXPECT_EQ(
      refused({{"offload", "{chunks: 1}"}, {"cost.copy_out", "1 ms"}, {"cost.copy_in", "1 ms"}}),
      "pipedream is not known with offload: its iterations run into each other");
  EXPECT_EQ(refused({{"schedule", "pipedream-2bw"}, {"batch.num_microbatches", "3"}}),
            "pipedream-2bw needs as many microbatches as devices, 4, for two versions of weights "
            "to suffice; there are 3; nearest shape that it accepts: num_microbatches 4");
}

}  // namespace
}  // namespace pipesim::asynchronous_test
