#include "models/stage_pair.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "models/stage_passes.h"
#include "tests/models/shapes.h"

namespace pipesim::stage_pair_test {
namespace {

struct Priced {
  Transformer model = testing::mixtral();
  CostSetting setting;
  Hardware hardware;
  LayerCosts costs;

  explicit Priced(int expert, double bandwidth = 1e9, PairOptions pair = {}) {
    setting.context = testing::plain(1, 1024);
    setting.context.expert = expert;
    setting.pair = pair;
    hardware.gpu.peak = {FlopsPerSecond(1e12), FlopsPerSecond(2e12)};
    hardware.gpu.memory_bandwidth = BytesPerSecond(1e12);
    hardware.interconnect.gpus_per_node = 8;
    for (CollectiveCurve& curve : hardware.interconnect.curves) {
      curve.bandwidth = BytesPerSecond(bandwidth);
    }
    costs = layer_costs(model, setting, hardware);
  }

  [[nodiscard]] double seconds(const StageLayers& f, const StageLayers& b) const {
    return StagePairs(model, setting, hardware, costs).seconds(f, b).value();
  }
  [[nodiscard]] StagePasses passes(const StageLayers& stage) const {
    return stage_passes(model, stage, costs);
  }
};

double forward(const StagePasses& passes) { return passes.forward.total().value(); }
double backward(const StagePasses& passes) {
  return (passes.backward_input.total() + passes.backward_weight.total()).value();
}

const StageLayers kTwo{.layers = 2};
const StageLayers kLast{.layers = 1, .output = true};

TEST(StagePair, TakesItsSumWithoutAnExchange) {
  const Priced priced(1);
  EXPECT_EQ(priced.seconds(kTwo, kLast),
            forward(priced.passes(kTwo)) + backward(priced.passes(kLast)));
}

TEST(StagePair, StandsBetweenTheLongerPassAndBoth) {
  const Priced priced(8);
  const StagePasses passes = priced.passes(kTwo);
  ASSERT_GT(passes.forward.expert, Seconds(0));
  const double block = priced.seconds(kTwo, kTwo);
  EXPECT_GT(block, std::max(forward(passes), backward(passes)));
  EXPECT_LT(block, forward(passes) + backward(passes));
}

// A quick exchange is over before the compute beside each part. It then costs only the share of the
// multiprocessors that it held.
TEST(StagePair, LeavesOfAShortExchangeWhatItTakesFromCompute) {
  const Priced priced(8, 1e13);
  const StagePasses passes = priced.passes(kTwo);
  const double exchange = (passes.forward.expert + passes.backward_input.expert).value();
  const double compute = forward(passes) + backward(passes) - exchange;
  EXPECT_NEAR(priced.seconds(kTwo, kTwo), compute + kExchangeShare * exchange, 1e-9 * compute);
}

TEST(StagePair, RunsTheOutputByItself) {
  const Priced priced(8);
  const StageLayers one{.layers = 1};
  const double output = priced.costs[LayerKind::kOutput].forward.total().value();
  EXPECT_NEAR(priced.seconds(kLast, kTwo), priced.seconds(one, kTwo) + output, 1e-12);
}

TEST(StagePair, HidesMoreWithDelayedWeightGradients) {
  const Priced fused(8, 1e7);
  const Priced apart(8, 1e7, {.delay_weight = true});
  EXPECT_LT(apart.seconds(kTwo, kTwo), fused.seconds(kTwo, kTwo));
}

// A pass alone, by parts, is what it is as a whole.
TEST(StagePair, LosesNothingOfAPassByCuttingIt) {
  const Priced priced(8);
  const StageLayers none{};
  EXPECT_NEAR(priced.seconds(kTwo, none), forward(priced.passes(kTwo)), 1e-12);
  EXPECT_NEAR(priced.seconds(none, kTwo), backward(priced.passes(kTwo)), 1e-12);
}

}  // namespace
}  // namespace pipesim::stage_pair_test
