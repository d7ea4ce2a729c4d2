#include "sim/planning/schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/pipeline/problems.h"

namespace pipesim::schedule_test {
namespace {

TEST(Schedules, StandInAlphabeticalOrderUnderUniqueNames) {
  const auto names = schedule_names();
  ASSERT_FALSE(names.empty());
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(Schedules, AreFoundByTheirExactName) {
  for (const Schedule* schedule : schedules()) {
    const std::string placement = schedule->placement ? schedule->placement->name : "";
    EXPECT_EQ(find_schedule(schedule->name, placement), schedule);
  }
  EXPECT_NE(find_schedule("1f1b"), nullptr);
  EXPECT_EQ(find_schedule("1F1B"), nullptr);
  EXPECT_EQ(find_schedule(""), nullptr);
}

TEST(Schedules, WithSeveralPlacementsAreFoundByTheirOption) {
  EXPECT_EQ(records_of("best").size(), 3U);
  EXPECT_EQ(find_schedule("best"), find_schedule("best", "vee"));
  EXPECT_EQ(find_schedule("best", "linear")->max_chunks, 1);
  EXPECT_EQ(find_schedule("best", "wave"), nullptr);
  EXPECT_EQ(find_schedule("1f1b", "vee"), nullptr);
  EXPECT_EQ(std::get<std::string>(options_of(*find_schedule("best", "looped")).at("placement")),
            "looped");
  EXPECT_EQ(title_of(*find_schedule("best", "looped")), "best-looped");
}

TEST(Schedules, AreAsPublishedButForBest) {
  for (const Schedule* schedule : schedules()) {
    EXPECT_EQ(schedule->origin == Origin::kOurs, schedule->name == "best") << schedule->name;
  }
  EXPECT_EQ(origin_text(*find_schedule("zb-v")),
            "as published (Zero Bubble, arXiv 2401.10241, section 6)");
  EXPECT_EQ(origin_text(*find_schedule("best")), "ours");
}

Schedule some_record() {
  return {.name = "some-name",
          .summary = "in some order",
          .source = "some paper",
          .plan = find_schedule("gpipe")->plan};
}

void read_registry_with(Schedule record) {
  const RegisteredSchedule registered{std::move(record)};
  try {
    (void)schedules();
  } catch (const LogicError& error) {
    std::fputs(error.what(), stderr);
    std::exit(3);
  }
}

Program no_program(const Problem& problem) { return {problem.shape, problem.placement, {}}; }

// Each in a process of its own, in which nobody has read the registry yet.
TEST(SchedulesDeathTest, MustNotShareAName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_registry_with(
                  {.name = "1f1b", .summary = "a twin", .source = "here", .plan = no_program}),
              ::testing::ExitedWithCode(3),
              "two schedules named '1f1b': in schedules/1f1b.cc and in planning/schedule_test.cc");
}

TEST(SchedulesDeathTest, MustHaveAWholeRecord) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_registry_with({.name = "some-name", .summary = "some", .source = "here"}),
              ::testing::ExitedWithCode(3),
              "planning/schedule_test.cc: schedule 'some-name': no plan: expected a function from "
              "Problem to Program");
}

TEST(SchedulesDeathTest, MustNameASchedulesThatIsThereAsTheirOrderWithoutOffload) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_registry_with({.name = "some-name",
                                  .summary = "some",
                                  .source = "here",
                                  .without_offload = "gpip",
                                  .plan = no_program}),
              ::testing::ExitedWithCode(3),
              "without_offload names 'gpip', which is no schedule; did you mean 'gpipe'");
}

TEST(FaultOfARecord, IsNothingWhereNothingIsClaimed) {
  EXPECT_EQ(fault_of(some_record()), "");
  for (const Schedule* schedule : schedules()) EXPECT_EQ(fault_of(*schedule), "");
}

TEST(FaultOfARecord, NamesTheFieldAndWhatIsExpected) {
  const auto fault = [](auto change) {
    Schedule record = some_record();
    change(record);
    return fault_of(record);
  };
  EXPECT_EQ(fault([](Schedule& of) { of.name = ""; }), "no name");
  EXPECT_EQ(fault([](Schedule& of) { of.name = "Some Name"; }),
            "name: expected small letters, digits and '-' alone");
  EXPECT_EQ(fault([](Schedule& of) { of.summary = ""; }),
            "no summary: expected a line that says what its order is");
  EXPECT_EQ(fault([](Schedule& of) { of.summary = "a\nb"; }), "summary: expected one line");
  EXPECT_EQ(fault([](Schedule& of) { of.source = ""; }),
            "no source: expected its paper, section or repository");
  EXPECT_EQ(fault([](Schedule& of) { of.place = nullptr; }),
            "no place: expected a function that makes its Placement");
  EXPECT_EQ(fault([](Schedule& of) { of.min_chunks = 2; }),
            "min_chunks 2, default_chunks 1 and max_chunks 1: expected 1 or more, each at least "
            "the one before");
  EXPECT_EQ(
      fault([](Schedule& of) { of.options = {{.name = "group", .help = "", .default_text = ""}}; }),
      "no help for the option group");
  EXPECT_EQ(fault([](Schedule& of) {
              of.runs_on = Runtime::kMegatron;
              of.no_flags = "none";
            }),
            "both runs_on and no_flags: expected one of them");
}

TEST(FaultOfARecord, IsAClaimThatIsMadeByHalf) {
  const auto fault = [](const BubbleClaim& bubble) {
    Schedule record = some_record();
    record.claims.bubble = bubble;
    return fault_of(record);
  };
  const auto everywhere = [](const Problem&) { return true; };
  const auto none = [](const Problem&) { return Seconds(0); };
  EXPECT_EQ(fault({.no_closed_form = "it is found by search"}), "");
  EXPECT_EQ(fault({"0", "everywhere", "", everywhere, none}), "");
  EXPECT_EQ(fault({.formula = "0"}),
            "the bubble claim has no domain: expected where it holds, in words");
  EXPECT_EQ(fault({.formula = "0", .domain = "everywhere"}),
            "the bubble claim has no `holds`: expected the function that decides its domain");
  EXPECT_EQ(fault({.formula = "0", .domain = "everywhere", .holds = everywhere}),
            "the bubble claim has a formula, but no function that computes it");
  EXPECT_EQ(fault({.domain = "everywhere"}),
            "the bubble claim has no formula: expected one, or nothing but no_closed_form");
  EXPECT_EQ(fault({"0", "everywhere", "", everywhere, none, "found by search"}),
            "the bubble claim has both a formula and no_closed_form");
}

TEST(Claims, ThatAreNotMadeHoldNowhereAndSayWhy) {
  const Problem problem = testing::make_problem({4, 1, 8, 1});
  EXPECT_FALSE(BubbleClaim().holds(problem));
  EXPECT_FALSE(PeakClaim().holds(problem));
  EXPECT_EQ(to_text(PeakClaim()), "no closed form: none is claimed");
  EXPECT_EQ(to_text(BubbleClaim{.no_closed_form = "it is found by search"}),
            "no closed form: it is found by search");
  EXPECT_EQ(to_text(find_schedule("gpipe")->claims.peak), "m [everywhere]");
}

TEST(Schedule, SaysHowManyChunksItHolds) {
  const Schedule* one = find_schedule("1f1b");
  ASSERT_NE(one, nullptr);
  const auto refusal = one->refusal(testing::make_problem({4, 2, 8, 1}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "1f1b holds 1 chunk per device, not 2");
  EXPECT_EQ(refusal->nearest, (Shape{4, 1, 8, 1}));

  const Schedule* many = find_schedule("interleaved-1f1b");
  ASSERT_NE(many, nullptr);
  const auto too_few = many->refusal(testing::make_problem({4, 1, 8, 1}));
  ASSERT_TRUE(too_few);
  EXPECT_EQ(too_few->reason, "interleaved-1f1b needs at least 2 chunks per device, not 1");
  EXPECT_EQ(too_few->nearest, (Shape{4, 2, 8, 1}));
}

TEST(Schedule, RefusesAGroupThatDoesNotFillThePipeline) {
  const Schedule* interleaved = find_schedule("interleaved-1f1b");
  Problem problem = testing::make_problem({4, 2, 10, 1});
  const auto rest = interleaved->refusal(problem);
  ASSERT_TRUE(rest) << "two groups of 4 leave 2 microbatches for 4 devices";
  EXPECT_EQ(rest->nearest, (Shape{4, 2, 8, 1}));
  problem.options["microbatch_group_size_per_vp_stage"] = 5L;
  EXPECT_FALSE(interleaved->refusal(problem));
}

TEST(Schedule, NamesANearestShapeThatFitsTheGroupSizeAskedFor) {
  const Schedule* interleaved = find_schedule("interleaved-1f1b");
  Problem problem = testing::make_problem({4, 2, 8, 1});
  problem.options["microbatch_group_size_per_vp_stage"] = 3L;
  const auto refusal = interleaved->refusal(problem);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->nearest, (Shape{3, 2, 9, 1}));
}

TEST(Conditions, SeeEveryStageAndEveryBoundary) {
  Problem problem = testing::make_problem({4, 1, 8, 1}, {3, 2, 1, 0});
  EXPECT_TRUE(uniform(problem));
  EXPECT_TRUE(free_transfers(problem));
  problem.stages[2].transfer = Seconds(1);
  EXPECT_TRUE(uniform(problem));
  EXPECT_FALSE(free_transfers(problem));
  for (auto member :
       {&StageCost::forward, &StageCost::backward_input, &StageCost::backward_weight}) {
    Problem other = problem;
    other.stages[3].*member = Seconds(9);
    EXPECT_FALSE(uniform(other));
  }
}

TEST(ForPlanning, CountsEveryChunkOnceWhereNoBytesAreGiven) {
  Problem problem = testing::make_problem({4, 2, 8, 2});
  for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = Bytes(0);
  const Problem counted = for_planning(problem);
  for (const StageCost& cost : counted.stages) {
    EXPECT_EQ(cost.activation, Bytes(0.5)) << "of a split";
    EXPECT_EQ(cost.weight_stash, Bytes(0.5));
  }
  EXPECT_EQ(counted.device_activation(), Bytes(2));
}

TEST(ForPlanning, KeepsGivenBytesButLetsFAcquireWhatWNeeds) {
  Problem problem = testing::make_problem({4, 1, 8, 1});
  for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = Bytes(0);
  problem.stages[1].activation = Bytes(5);
  problem.stages[2].weight_stash = Bytes(3);
  const Problem planning = for_planning(problem);
  EXPECT_EQ(planning.stage(0).activation, Bytes(0));
  EXPECT_EQ(planning.stage(1).activation, Bytes(5));
  EXPECT_EQ(planning.stage(2).activation, Bytes(3));
}

TEST(Problem, GivesAnOptionOrNothing) {
  Problem problem;
  EXPECT_EQ(problem.option<long>("group"), std::nullopt);
  problem.options["group"] = 4L;
  EXPECT_EQ(problem.option<long>("group"), 4);
}

}  // namespace
}  // namespace pipesim::schedule_test
