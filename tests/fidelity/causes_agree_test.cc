// Engines that agree on times agree on causes: with stragglers, a device that waits for a slower
// one waits for the same reason whether its GPU is slowed down by the graph or by SimGrid.
#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::causes_agree_test {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}
  int whole(int low, int high) {
    return boost::random::uniform_int_distribution<int>(low, high)(generator_);
  }
  const char* one_of(std::initializer_list<const char*> choices) {
    return choices.begin()[whole(0, static_cast<int>(choices.size()) - 1)];
  }

 private:
  boost::random::mt19937_64 generator_;
};

// Half of them have equal passes, which makes many things happen at the same instant.
std::string scenario_of(unsigned seed) {
  Draw draw(seed);
  const int devices = 2 * draw.whole(1, 3);
  const int pipelines = draw.whole(1, 2);
  const int unit = draw.whole(5, 20);
  const bool equal = draw.whole(0, 1) == 0;
  const bool joined = draw.whole(0, 2) > 0;
  const auto pass = [&] { return fmt::format("{} ms", equal ? unit : draw.whole(2, 20)); };
  return fmt::format(
      "schedule: {}\nparallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: {}}}\npipelines: {}\noptimizer: {{sync: {}}}\n"
      "cost: {{kind: given, per: stage, forward: {}, backward_input: {}, backward_weight: {}, "
      "transfer: {}, optimizer: 1.8 ms, collective: {}}}\n"
      "perturb: {{stragglers: [{{rank: {}, factor: {}}}]{}}}\n",
      draw.one_of({"1f1b", "zb-h1", "zb-v", "v-half", "interleaved-1f1b", "gis"}), devices,
      devices * draw.whole(1, 4), pipelines, joined ? "all_reduce" : "post_validation", pass(),
      pass(), pass(), draw.one_of({"0 s", "0.5 ms", "2 ms"}), joined ? "2.538 ms" : "0 s",
      draw.whole(0, devices * pipelines - 1), draw.one_of({"1.1", "1.25", "2", "3"}),
      draw.whole(0, 3) == 0 ? ", jitter: 0.005, runs: 2" : "");
}

Result simulated(const std::string& text, const char* engine) {
  return simulate(prepare_first(read_scenario(YamlSource("test", text, {{"engine", engine, {}}}))));
}

// The largest difference of a device's idle time for one cause, as a share of the period.
double difference(const Report& a, const Report& b) {
  double worst = std::abs((a.iteration - b.iteration).value());
  for (size_t d = 0; d < a.devices.size(); ++d) {
    for (size_t c = 0; c < a.devices[d].idle_by_cause.size(); ++c) {
      const Seconds apart = a.devices[d].idle_by_cause[c] - b.devices[d].idle_by_cause[c];
      worst = std::max(worst, std::abs(apart.value()));
    }
  }
  return worst / a.iteration.value();
}

TEST(Causes, AreTheSameUnderEveryEngineWithStragglers) {
  int imbalanced = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::string text = scenario_of(seed);
    const Result replay = simulated(text, "replay");
    for (const char* engine : {"{name: simgrid, gpu: timer}", "{name: simgrid, gpu: host}"}) {
      EXPECT_LT(difference(replay.report, simulated(text, engine).report), 1e-9) << engine << '\n'
                                                                                 << text;
    }
    imbalanced += std::ranges::any_of(replay.report.devices, [](const DeviceReport& device) {
      return device.idle_by_cause[IdleCause::kImbalance] > Seconds(0);
    });
  }
  EXPECT_GT(imbalanced, 25) << "too few of them tell order from imbalance";
}

// A GPU that slows down in the middle is the slower one from then on, and not before.
TEST(Causes, FollowTheSpeedOfTheTimeOfTheWait) {
  const std::string text =
      "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\n"
      "batch: {num_microbatches: 16}\nengine: {name: simgrid, gpu: host}\n"
      "cost: {kind: given, per: stage, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 "
      "ms}\nperturb: {stragglers: [{rank: 2, factor: 2";
  const auto waits_for_slower = [&text](const std::string& from) {
    const Result result = simulate(prepare_first(read_scenario(YamlSource("test", text + from))));
    return result.report.devices[0].idle_by_cause[IdleCause::kImbalance];
  };
  const Seconds always = waits_for_slower("}]}");
  const Seconds later = waits_for_slower(", from: 300 ms}]}");
  EXPECT_GT(later, Seconds(0));
  EXPECT_GT(always, later);
  EXPECT_EQ(waits_for_slower(", from: 100 s}]}"), Seconds(0));
}

}  // namespace
}  // namespace pipesim::causes_agree_test
