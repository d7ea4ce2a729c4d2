// Given seconds of the parts of layers: passes and overlapped blocks follow from them.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "models/pair.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/execution/evaluate.h"
#include "tests/case/cases.h"

namespace pipesim::layer_parts_test {
namespace {

const std::string kLayer =
    "{count: 4, forward: {attention: 10 ms, dispatch: 6 ms, experts: 12 ms, combine: 6 ms}, "
    "backward_input: {attention: 12 ms, dispatch: 6 ms, experts: 13 ms, combine: 6 ms}, "
    "backward_weight: {attention: 8 ms, experts: 11 ms}}";

const std::string kCombined =
    "schedule: {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2, "
    "overlap_moe_expert_parallel_comm: true}\n"
    "parallel: {pipeline_model_parallel_size: 2}\n"
    "batch: {num_microbatches: 4}\n"
    "cost: {kind: given, layer: " +
    kLayer + "}\n";

Case case_with(const Changes& changes = {}) {
  return prepare_first(read_changed(kCombined, changes));
}

Seconds pair_of(int forward, int backward, const PairOptions& options) {
  const auto ms = [](double value) { return Seconds(value / 1e3); };
  const std::vector<ForwardParts> f(forward, {ms(10), ms(6), ms(12), ms(6)});
  const std::vector<BackwardParts> b(backward, {ms(6), ms(13), ms(6), ms(12), ms(11), ms(8)});
  return pair_times(f, b, options).total;
}

double milliseconds(Seconds seconds) { return 1e3 * seconds.value(); }

TEST(LayerParts, MakePassesOneAfterTheOther) {
  const Case made = case_with();
  for (const StageCost& stage : made.problem.stages) {  // two layers each
    EXPECT_NEAR(milliseconds(stage.forward), 68, 1e-9);
    EXPECT_NEAR(milliseconds(stage.backward_input), 74, 1e-9);
    EXPECT_NEAR(milliseconds(stage.backward_weight), 38, 1e-9);
  }
}

TEST(LayerParts, MakeBlocksAsTheScheduleRunsThem) {
  const Seconds whole = pair_of(2, 2, {.delay_weight = false});
  const Seconds apart = pair_of(2, 2, {.delay_weight = true});
  const Seconds early = pair_of(2, 2, {.delay_weight = false, .early_attention = true});
  const auto block = [](const Changes& changes) {
    const Case made = case_with(changes);
    return *block_seconds(made.problem, 0, 2);
  };
  EXPECT_DOUBLE_EQ(block({}).value(), whole.value());
  EXPECT_DOUBLE_EQ(block({{"schedule.delay_wgrad_compute", "true"}}).value(), apart.value());
  EXPECT_DOUBLE_EQ(block({{"schedule.ep_overlap_early_attn_memory_release", "true"}}).value(),
                   early.value());
  EXPECT_NE(whole, apart);
  EXPECT_NE(whole, early);
  const Case made = case_with();
  EXPECT_LT(whole, made.problem.stage(0).forward + made.problem.stage(0).backward_input +
                       made.problem.stage(0).backward_weight);
}

TEST(LayerParts, SlowWhatIsComputedBesideAnExchange) {
  const Case made = case_with({{"cost.layer.exchange_share", "0.25"}});
  const PairOptions options{.delay_weight = false, .exchange_share = 0.25};
  EXPECT_DOUBLE_EQ(block_seconds(made.problem, 0, 2)->value(), pair_of(2, 2, options).value());
}

TEST(LayerParts, MakeABlockOfTwoStagesThatDiffer) {
  const Case made = case_with({{"cost.per", "stage"}, {"cost.layer.count", "[2, 3, 1, 4]"}});
  const PairOptions options{.delay_weight = false};
  EXPECT_DOUBLE_EQ(block_seconds(made.problem, 0, 2)->value(), pair_of(2, 1, options).value());
  EXPECT_DOUBLE_EQ(block_seconds(made.problem, 3, 1)->value(), pair_of(4, 3, options).value());
  EXPECT_NEAR(milliseconds(made.problem.stage(3).forward), 4 * 34, 1e-9);
}

TEST(LayerParts, AreAsTheirSumsWrittenOut) {
  const Case made = case_with();
  const Seconds block = *made.problem.stage(0).overlapped;
  const std::string sums =
      "{kind: given, per: stage, forward: 68 ms, backward_input: 74 ms, "
      "backward_weight: 38 ms, overlapped: " +
      std::to_string(milliseconds(block)) + " ms}";
  const Case other = case_with({{"cost", sums}});
  EXPECT_NEAR(simulate(made).report.iteration.value(), simulate(other).report.iteration.value(),
              1e-9);
}

TEST(LayerParts, ShareAMicrobatchAmongItsSlices) {
  const Changes sliced{{"schedule", "{name: seq-1f1b, splits: 2}"}};
  const Case made = case_with(sliced);
  EXPECT_NEAR(milliseconds(made.problem.stage(0).forward), 4 * 34 / 2., 1e-9);
  EXPECT_DOUBLE_EQ(made.problem.stage(0).overlapped->value(),
                   pair_of(4, 4, {.delay_weight = true}).value() / 2);
}

TEST(LayerParts, RefuseChunksThatLayersDoNotDivideInto) {
  try {
    (void)case_with({{"cost.layer.count", "5"}});
    FAIL() << "is accepted";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("the 5 layers of device 0 (cost.layer.count) do not divide into its 2 chunks"),
        std::string::npos)
        << error.what();
  }
}

struct Bad {
  Changes changes;
  const char* expected;
};

TEST(LayerParts, AreRefusedWithTheirPlace) {
  const std::vector<Bad> all{
      {{{"cost.forward", "1 ms"}},
       "cost.forward: stands beside 'layer', from whose parts it follows: give one of the two"},
      {{{"cost.overlapped", "1 ms"}}, "cost.overlapped: stands beside 'layer'"},
      {{{"cost.layer.forward.atention", "1 ms"}}, "unknown key; did you mean 'attention'?"},
      {{{"cost.layer.forward.combine", "1"}}, "has no unit"},
      {{{"cost.layer.forward", "{attention: 0, dispatch: 0, experts: 0, combine: 0}"}},
       "cost.layer.forward: takes no time: give a part that does"},
      {{{"cost.layer.backward_weight", "{attention: 0}"}}, "'experts' is missing"},
      {{{"cost.layer.count", "[1, 2, 3]"}}, "one per device (2), not 3"},
      {{{"cost.layer.count", "0"}}, "from 1 to 1000"},
      {{{"cost.layer.exchange_share", "1"}}, "from 0 to 0.99"},
      {{{"cost.layers", "2"}}, "unknown key; did you mean 'layer'?"}};
  for (const Bad& each : all) {
    const std::string message = refusal_of(kCombined, each.changes);
    EXPECT_NE(message.find(each.expected), std::string::npos)
        << "got: " << message << "\nexpected: " << each.expected;
  }
}

}  // namespace
}  // namespace pipesim::layer_parts_test
