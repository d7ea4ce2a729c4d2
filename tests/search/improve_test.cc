// Anyone's order refined on its own placement, and what bounds it.
#include "sim/search/improve.h"

#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/pipeline/problems.h"

namespace pipesim::improve_test {
namespace {

Case case_with(const std::string& schedule, const std::string& more = "",
               const std::string& batch = "num_microbatches: 12") {
  return prepare_first(read_scenario(YamlSource("test", "schedule: " + schedule + R"(
parallel: {pipeline_model_parallel_size: 4}
batch: {)" + batch + R"(}
cost: {kind: given, per: device, forward: [10 ms, 14 ms, 9 ms, 11 ms], backward_input: 12 ms,
       backward_weight: 8 ms, transfer: 0.4 ms, overlapped: 25 ms}
)" + more)));
}

RefineOptions little() { return {.seed = 1, .effort = 3e5}; }

TEST(Improve, IsNeverLongerAndKeepsWhatTheOrderHolds) {
  for (const std::string sync : {"none", "post_validation", "all_reduce"}) {
    for (const std::string schedule :
         {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "v-half", "1f1b-v"}) {
      SCOPED_TRACE(schedule + " " + sync);
      const Improved improved =
          improve(case_with(schedule, "optimizer: {sync: " + sync + "}\n"), std::nullopt, little());
      EXPECT_LE(improved.seconds_after, improved.seconds_before);
      EXPECT_LE(improved.peak_after, improved.limit * (1 + 1e-9));
      EXPECT_EQ(improved.limit, improved.peak_before);
      EXPECT_GE(improved.time.value() * (1 + 1e-9), improved.bound.value());
      EXPECT_FALSE(improved.held_back);
    }
  }
  EXPECT_LT(improve(case_with("1f1b"), std::nullopt, little()).seconds_after,
            improve(case_with("1f1b"), std::nullopt, {.effort = 0}).seconds_after);
}

// Where W needs more than F kept, whole backwards hold less than B and W apart.
TEST(Improve, KeepsWhatTheOrderOfAModelHolds) {
  for (const std::string schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "v-half"}) {
    SCOPED_TRACE(schedule);
    const Case made = prepare_first(read_scenario(YamlSource("s.yaml", "schedule: " + schedule + R"(
model: llama3-70b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 8, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
)")));
    const Bytes held = simulate(made).report.peak_activation;
    for (const auto& limit : {std::optional<Bytes>(), std::optional(1.2 * held)}) {
      const Improved improved = improve(made, limit, little());
      EXPECT_EQ(improved.peak_before, held);
      EXPECT_EQ(improved.peak_after, simulate(improved.after).report.peak_activation);
      EXPECT_LE(improved.peak_after, limit.value_or(held) * (1 + 1e-9));
      EXPECT_LE(improved.seconds_after, improved.seconds_before);
      EXPECT_GE(improved.time.value() * (1 + 1e-9), improved.bound.value());
    }
  }
}

// In a model a whole backward takes less than B and W, and holds less: it stays one.
TEST(Improve, RefinesWholeBackwardsAsTheyAre) {
  const Case made = prepare_first(read_scenario(YamlSource("s.yaml", R"(
schedule: chimera
model: llama3-70b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 8, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
)")));
  const Improved improved = improve(made, std::nullopt, {.seed = 1, .effort = 3e6});
  EXPECT_LT(improved.seconds_after, improved.seconds_before);
  EXPECT_EQ(improved.seconds_after, simulate(improved.after).report.iteration);
  EXPECT_EQ(improved.peak_after, simulate(improved.after).report.peak_activation);
  EXPECT_TRUE(improved.after.choice.program->whole_backwards());
  EXPECT_LE(improved.peak_after, improved.limit * (1 + 1e-9));
  EXPECT_GE(improved.time.value() * (1 + 1e-9), improved.bound.value());
}

TEST(Improve, BringsAnOrderBelowTheLimitOrSaysThatNothingFits) {
  const Case made = case_with("zb-h2");
  const Bytes unit = unit_of_limit(made);
  for (const double times : {0.25, 0.5, 1.0}) {
    const Improved improved = improve(made, times * unit, little());
    EXPECT_TRUE(improved.held_back) << times;
    EXPECT_LE(improved.peak_after, times * unit * (1 + 1e-9));
    EXPECT_GE(improved.time.value() * (1 + 1e-9), improved.bound.value());
  }
  EXPECT_THROW(improve(made, 0.2 * unit, little()), InfeasibleError);
}

std::string refusal(const Case& made, bool others) {
  try {
    (void)improve(made, std::nullopt, little(), others);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Improve, RefusesThreeThingsByName) {
  const auto of = [](const std::string& more) {
    return prepare_first(read_scenario(YamlSource("test", R"(
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms)" +
                                                              more)));
  };
  for (const bool others : {false, true}) {
    EXPECT_TRUE(
        says(refusal(of(", output_forward: 2 ms, output_backward: 3 ms, input_forward: 1 ms, "
                        "input_backward: 1 ms, collective: 1 ms}\nschedule: 1f1b\n"
                        "vocabulary: vocab-1\n"),
                     others),
             "a vocabulary on every device"));
    EXPECT_TRUE(says(refusal(of(", copy_out: 6 ms, copy_in: 6 ms}\n"
                                "schedule: {name: 1f1b, offload: {devices_per_link: 1}}"),
                             others),
                     "wait on the host"));
    EXPECT_TRUE(says(refusal(of("}\nschedule: pipedream-2bw"), others),
                     "iterations that run into each other"));
  }
}

// `prove` starts from what others plan too, and its integer program knows no more.
TEST(Improve, RefusesWhatProofsLackWhereOthersAreTried) {
  const auto of = [](const std::string& schedule, const std::string& more = "",
                     const std::string& batch = "num_microbatches: 12") {
    return refusal(case_with(schedule, more, batch), true);
  };
  EXPECT_TRUE(says(of("{name: dualpipe, overlap: false}"), "several copies"));
  EXPECT_TRUE(says(of("seq-1f1b"), "sequence splits"));
  EXPECT_TRUE(says(of("1f1b", "recompute: full\n"), "recomputation"));
  EXPECT_TRUE(says(of("1f1b", "framework: {transfers: blocking}\n"), "hold devices"));
  EXPECT_TRUE(says(of("looped-bfs", "", "num_microbatches: 3, factors: [1, 2, 3]"), "unequally"));
}

TEST(Improve, JoinsNeighboursWhereBlocksTakeLess) {
  const Case made = case_with("1f1b");
  const Improved improved = improve(made, 1.25 * unit_of_limit(made), little());
  EXPECT_FALSE(improved.after.choice.program->pairs().empty());
  EXPECT_LT(improved.seconds_after, improved.seconds_before);
  EXPECT_LE(improved.peak_after, improved.limit * (1 + 1e-9));
}

TEST(Improve, TakesOrdersWithOverlappedBlocks) {
  const Improved improved = improve(case_with("dualpipev"), std::nullopt, little());
  EXPECT_LE(improved.seconds_after, improved.seconds_before);
  EXPECT_LE(improved.peak_after, improved.limit * (1 + 1e-9));
  EXPECT_GE(improved.time.value() * (1 + 1e-9), improved.bound.value());
}

// Microbatches that overtake each other are put in their order, which costs nothing.
TEST(Improve, TakesOrdersWhoseMicrobatchesOvertakeEachOther) {
  Problem problem = testing::make_problem({2, 1, 2, 1});
  problem.objective = Objective::kMakespan;
  const auto pass = [](PassKind kind, int i) { return make_pass(kind, i, 0); };
  const std::vector<Pass> order{pass(PassKind::kF, 1), pass(PassKind::kF, 0),
                                pass(PassKind::kBW, 1), pass(PassKind::kBW, 0)};
  const Program program(problem.shape, problem.placement, {order, order});
  const Program refined = refine(program, problem, Bytes(2), {1, 1e4});
  EXPECT_EQ(refined.passes(0)[0].microbatch, 0U);
  EXPECT_LE(evaluate(refined, problem).makespan, evaluate(program, problem).makespan);
}

BoundReason reason(Problem problem, double limit, Objective objective) {
  problem.objective = objective;
  return reason_of_bound(problem, Bytes(limit));
}

TEST(BoundReason, NamesWorkStartDrainAndMemory) {
  // Times of F, B, W and transfer; one microbatch in flight at a time is all that 1 byte holds.
  Problem problem = testing::make_problem({3, 1, 30, 1}, {10, 10, 10, 0});
  EXPECT_EQ(reason(problem, 1, Objective::kCost).holder, BoundHolder::kMemory);
  EXPECT_EQ(reason(problem, 100, Objective::kCost).holder, BoundHolder::kWork);
  EXPECT_EQ(reason(problem, 100, Objective::kMakespan).holder, BoundHolder::kStart);
  // A slow last stage: its F arrive late. A slow first one: its last B comes late.
  problem.stages[2].backward_weight = Seconds(200);
  const BoundReason late = reason(problem, 100, Objective::kMakespan);
  EXPECT_EQ(late.holder, BoundHolder::kStart);
  EXPECT_EQ(late.device, 2);
  EXPECT_NEAR(late.idle.value(), 20, 1e-9);
  // One microbatch: nothing but its way.
  const Problem one = testing::make_problem({3, 1, 1, 1}, {10, 10, 10, 1});
  const BoundReason trip = reason(one, 100, Objective::kCost);
  EXPECT_TRUE(trip.holder == BoundHolder::kStart || trip.holder == BoundHolder::kDrain ||
              trip.holder == BoundHolder::kRoundTrip);
  EXPECT_GT(trip.idle, Seconds(0));
  EXPECT_NE(to_text(late).find("device 2 waits 20.000 s"), std::string::npos) << to_text(late);
}

}  // namespace
}  // namespace pipesim::improve_test
