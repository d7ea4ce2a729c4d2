// Plans: nothing better is lost, and what is named is what a run of it takes.
#include "sim/layouts/plan.h"

#include <gtest/gtest.h>
#include <numeric>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/core/thread_team.h"
#include "sim/layouts/bound.h"
#include "sim/layouts/question.h"
#include "sim/layouts/report.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"
#include "tests/layouts/bounds.h"

namespace pipesim::plan_test {
namespace {

ClusterPlan ask(const std::vector<PlanSetting>& settings) {
  std::vector<Override> overrides;
  for (const PlanSetting& setting : settings) {
    overrides.push_back({setting.path, setting.value, {"command line", 1, 1, ""}});
  }
  return read_plan_question(overrides);
}

// 24 layers on two nodes, with little enough memory that some layouts do not fit.
ClusterPlan small(const std::string& capacity) {
  ClusterPlan plan = ask({{"model", "zb-1.5b"},
                          {"cluster", "dgx-a100"},
                          {"batch.seq_length", "1024"},
                          {"memory.capacity", capacity}});
  plan.question.gpus = 16;
  plan.question.global_batch = 64;
  plan.question.axes.tensor = {1};
  plan.question.axes.chunks = {3};
  plan.question.axes.micro_batch = {2};
  plan.question.axes.schedules = {"1f1b", "interleaved-1f1b", "po-h", "v-half", "zb", "zb-h1"};
  return plan;
}

ClusterPlan experts() {
  ClusterPlan plan =
      ask({{"model", "mixtral-8x7b"}, {"cluster", "dgx-h100"}, {"batch.seq_length", "4096"}});
  plan.question.gpus = 32;
  plan.question.global_batch = 128;
  plan.question.axes.tensor = {2, 4};
  plan.question.axes.expert = {2, 8};
  plan.question.axes.pipeline = {2, 4};
  plan.question.axes.chunks = {4};
  plan.question.axes.micro_batch = {1};
  plan.question.axes.schedules = {"1f1b", "dualpipev", "interleaved-1f1b"};
  plan.question.axes.offload = {false};
  return plan;
}

std::vector<size_t> ids(const PlanResult& result) {
  std::vector<size_t> all;
  for (const Planned& planned : result.best) all.push_back(planned.id);
  return all;
}

std::string as_json(const ClusterPlan& plan) {
  std::ostringstream text;
  write_plan_json(text, {&plan, 1}, 1e12, "test");
  return text.str();
}

TEST(Plan, ExhaustiveFindsTheSameBest) {
  for (ClusterPlan plan : {small("80 GiB"), small("6 GiB"), experts()}) {
    const PlanResult quick = pipesim::plan(plan.question, {.best = 8});
    const PlanResult all = pipesim::plan(plan.question, {.best = 8, .exhaustive = true});
    ASSERT_EQ(quick.best.size(), 8U);
    EXPECT_EQ(ids(quick), ids(all));
    EXPECT_LT(quick.counts.evaluated, all.counts.evaluated);
    EXPECT_EQ(all.counts.too_slow, 0U);
  }
}

void expect_runs_as_planned(const ClusterPlan& plan, const Planned& row) {
  const std::string text = plan_scenario(plan, row);
  const Result again = simulate(prepare_first(read_scenario(YamlSource("planned.yaml", text))));
  EXPECT_EQ(again.report.iteration, row.iteration) << text;
  EXPECT_EQ(*again.report.peak_memory, row.peak) << text;
}

TEST(Plan, RecomputesAsFewLayersAsTheMemoryAsksFor) {
  ClusterPlan plan = small("6 GiB");
  plan.question.axes.fewest_layers = true;
  plan.question.axes.recompute = {RecomputeGranularity::kNone, RecomputeGranularity::kFull};
  plan.question.axes.offload = {false};
  const PlanResult quick = pipesim::plan(plan.question, {.best = 40});
  const PlanResult all = pipesim::plan(plan.question, {.best = 40, .exhaustive = true});
  EXPECT_EQ(ids(quick), ids(all));
  int partly = 0;
  for (const Planned& row : quick.best) {
    if (row.point.recompute_layers == 0) continue;
    ++partly;
    PlanPoint point = row.point;
    --point.recompute_layers;
    if (point.recompute_layers == 0) point.recompute = RecomputeGranularity::kNone;
    const PointRun fewer = run_point(plan.question, point, row.balanced());
    EXPECT_LT(fewer.fits(plan.question), MemoryFit::kYes) << label_of(row.point);
    point.recompute = RecomputeGranularity::kFull;
    point.recompute_layers = 0;
    EXPECT_LT(row.iteration, run_point(plan.question, point, row.balanced()).planned.iteration);
    expect_runs_as_planned(plan, row);
  }
  EXPECT_GT(partly, 3);
}

TEST(Plan, OffloadsModulesOnlyWhereTheLayoutDoesNotFit) {
  ClusterPlan plan = small("6 GiB");
  plan.question.axes.modules = modules_to_plan();
  plan.question.axes.offload = {false};
  const PlanResult quick = pipesim::plan(plan.question, {.best = 40});
  const PlanResult all = pipesim::plan(plan.question, {.best = 40, .exhaustive = true});
  EXPECT_EQ(ids(quick), ids(all));
  int offloading = 0;
  for (const Planned& row : quick.best) {
    if (!row.point.modules.any()) continue;
    ++offloading;
    PlanPoint without = row.point;
    without.modules = {};
    const PointRun run = run_point(plan.question, without, row.balanced());
    EXPECT_LT(run.fits(plan.question), MemoryFit::kYes) << label_of(row.point);
    expect_runs_as_planned(plan, row);
  }
  EXPECT_GT(offloading, 0);
}

TEST(Plan, LeavesOutRecomputationThatBuysNothing) {
  for (const ClusterPlan& plan : {small("80 GiB"), small("6 GiB"), experts()}) {
    const PlanResult found = pipesim::plan(plan.question, {.best = 60});
    const std::vector<PlanPoint> points = plan_space(plan.question).points;
    for (const Planned& row : found.best) {
      if (row.point.recompute == RecomputeGranularity::kNone) continue;
      PlanPoint without = row.point;
      without.recompute = RecomputeGranularity::kNone;
      if (std::ranges::count(points, without) == 0) continue;
      try {
        const PointRun run = run_point(plan.question, without, row.balanced());
        EXPECT_TRUE(run.fits(plan.question) < row.fits || run.planned.iteration > row.iteration)
            << label_of(row.point);
      } catch (const InfeasibleError&) {
      }
    }
  }
}

TEST(Plan, RanksWhatFitsTightlyBehindWhatFits) {
  ClusterPlan plan = small("6 GiB");
  plan.result = pipesim::plan(plan.question, {.best = 2000});
  const auto& best = plan.result.best;
  const auto first_tight = std::ranges::find(best, MemoryFit::kTight, &Planned::fits);
  ASSERT_NE(first_tight, best.begin());
  ASSERT_NE(first_tight, best.end());
  EXPECT_TRUE(std::all_of(first_tight, best.end(),
                          [](const Planned& each) { return each.fits == MemoryFit::kTight; }));
  EXPECT_LT(first_tight->iteration, (first_tight - 1)->iteration) << "faster, and behind";
  for (const Planned& each : best) {
    EXPECT_EQ(each.fits == MemoryFit::kYes, each.peak <= plan.question.surely_within());
    EXPECT_LE(each.peak, plan.question.may_be_within());
  }
  EXPECT_GE(plan.result.counts.tight,  // of twins one is named
            static_cast<size_t>(std::ranges::count(best, MemoryFit::kTight, &Planned::fits)));
  EXPECT_NE(plan_table({&plan, 1}, {}).find(" fit tightly, "), std::string::npos);
}

TEST(Plan, CountsEveryPointOnce) {
  const ClusterPlan plan = small("6 GiB");
  const PlanCounts counts = pipesim::plan(plan.question, {}).counts;
  EXPECT_EQ(counts.points, plan_space(plan.question).points.size());
  EXPECT_EQ(
      counts.evaluated + counts.too_large + counts.too_slow + counts.refused + counts.repeated,
      counts.points);
  EXPECT_GT(counts.too_large, 0U);
  EXPECT_GT(counts.unfit, 0U);
}

TEST(Plan, WritesScenariosThatRunAsPlanned) {
  for (ClusterPlan plan : {small("80 GiB"), small("6 GiB"), experts()}) {
    plan.result = pipesim::plan(plan.question, {.best = 12});
    for (const Planned& planned : plan.result.best) {
      const std::string text = plan_scenario(plan, planned);
      const Scenario scenario = read_scenario(YamlSource("planned.yaml", text));
      const Result run = simulate(prepare_first(scenario));
      EXPECT_EQ(run.report.iteration, planned.iteration) << text;
      EXPECT_EQ(*run.report.peak_memory, planned.peak) << text;
      EXPECT_EQ(run.fits, planned.fits) << text;
    }
  }
}

TEST(Plan, OffloadsWhereItSaysSo) {
  ClusterPlan plan = small("80 GiB");
  plan.question.axes.pipeline = {8};
  plan.question.axes.schedules = {"1f1b"};
  plan.question.axes.recompute = {RecomputeGranularity::kNone};
  plan.question.axes.splits = {PlanSplit::kEvenWithEnds};
  const std::vector<PlanPoint> points = plan_space(plan.question).points;
  EXPECT_GT(points.size(), 1U);
  for (const PlanPoint& point : points) {
    const Result run = simulate(prepare_first(scenario_of(plan.question, point)));
    EXPECT_EQ(run.host.has_value(), point.offload) << label_of(point);
  }
}

// Optimizer states of 8 billion parameters take 64 GB of each of two nodes.
TEST(Plan, RefusesWhatTheHostsOfItsNodesDoNotHold) {
  const auto planned = [](const std::string& memory) {
    ClusterPlan plan = ask({{"model", "llama3-8b"},
                            {"cluster", "{name: dgx-h100, host: {memory: " + memory + "}}"},
                            {"batch.seq_length", "4096"},
                            {"memory.optimizer_offload_fraction", "1"}});
    plan.question.gpus = 16;
    plan.question.global_batch = 32;
    plan.question.axes.schedules = {"1f1b"};
    plan.question.axes.tensor = {2};
    plan.result = pipesim::plan(plan.question, {.best = 2});
    return plan;
  };
  const ClusterPlan room = planned("100 GB");
  ASSERT_FALSE(room.result.best.empty());
  const Planned& best = room.result.best.front();
  EXPECT_LE(best.on_host, Bytes(100e9));
  EXPECT_GT(best.on_host, Bytes(64e9));
  const ClusterPlan none = planned("60 GB");
  EXPECT_TRUE(none.result.best.empty());
  EXPECT_EQ(none.result.counts.evaluated, 0U);
  ASSERT_TRUE(none.result.nearest);
  EXPECT_TRUE(none.result.nearest->host);
  EXPECT_NE(no_fit_text(none, {}).find("a node's host has 55.88 GiB"), std::string::npos)
      << no_fit_text(none, {});
}

TEST(Plan, DoesNotDependOnTheNumberOfThreads) {
  ClusterPlan one = small("6 GiB");
  ClusterPlan three = one;
  limit_threads(1);
  one.result = pipesim::plan(one.question, {});
  limit_threads(3);
  three.result = pipesim::plan(three.question, {});
  limit_threads(0);
  EXPECT_EQ(as_json(one), as_json(three));
}

TEST(Plan, SharesOfTheTimeSumToOne) {
  for (ClusterPlan plan : {small("6 GiB"), experts()}) {
    for (const Planned& planned : pipesim::plan(plan.question, {.best = 25}).best) {
      const double sum = std::accumulate(planned.shares.begin(), planned.shares.end(), 0.0);
      EXPECT_NEAR(sum, 1, 1e-9);
      for (const double share : planned.shares) EXPECT_GE(share, -1e-9) << label_of(planned.point);
    }
  }
}

TEST(Plan, EndsWithWhatItHasWhenItIsToStop) {
  const ClusterPlan plan = small("80 GiB");
  size_t evaluated = 0;
  const PlanOptions options{.progress = [&](const PlanProgress& p) { evaluated = p.evaluated; },
                            .stop = [&] { return evaluated > 0; }};
  const PlanResult result = pipesim::plan(plan.question, options);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.best.empty());
  ClusterPlan named = plan;
  named.result = result;
  EXPECT_TRUE(plan_table({&named, 1}, {}).starts_with("INCOMPLETE: "));
}

TEST(Plan, NamesTheLayoutThatLacksLeastWhereNothingFits) {
  ClusterPlan plan = small("2 GiB");
  plan.question.axes.recompute = {RecomputeGranularity::kNone};
  plan.question.axes.offload = {false};
  plan.question.axes.schedules = {"1f1b", "v-half", "zb-h1"};
  plan.result = pipesim::plan(plan.question, {});
  const auto all = pipesim::plan(plan.question, {.exhaustive = true}).nearest;
  const auto& nearest = plan.result.nearest;
  ASSERT_TRUE(nearest && all);
  EXPECT_EQ(nearest->planned.id, all->planned.id);
  EXPECT_EQ(nearest->over, nearest->planned.peak - plan.question.limit());
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    const Scenario scenario = scenario_of(plan.question, point);
    try {
      EXPECT_GE(*simulate(prepare_first(scenario)).report.peak_memory, nearest->planned.peak);
    } catch (const InputError&) {
      continue;  // refused by the schedule
    }
  }
  EXPECT_NE(no_fit_text(plan, {}).find("nearest: " + label_of(nearest->planned.point)),
            std::string::npos);
  // The low end of its band is enough, and a byte less is not.
  const Bytes least = plan.question.base.modelled->band.low * nearest->planned.peak;
  plan.question.base.modelled->capacity = least;
  const auto tight = pipesim::plan(plan.question, {}).best;
  ASSERT_FALSE(tight.empty());
  EXPECT_EQ(tight.front().fits, MemoryFit::kTight);
  plan.question.base.modelled->capacity = least - Bytes(1);
  EXPECT_TRUE(pipesim::plan(plan.question, {}).best.empty());
}

TEST(Plan, RanksWhatWasRunAgainByContention) {
  ClusterPlan plan = small("80 GiB");
  plan.result = pipesim::plan(plan.question, {.best = 4});
  auto& best = plan.result.best;
  ASSERT_EQ(best.size(), 4U);
  EXPECT_EQ(plan_table({&plan, 1}, {}).find("run again"), std::string::npos);
  best[0].contended = Contended{2 * best[0].iteration, {}};
  best[1].contended = Contended{1.5 * best[0].iteration, {}};
  rank_by_contention(best);
  std::vector<size_t> ranks;
  for (const Planned& planned : best) ranks.push_back(planned.rank_by_replay);
  EXPECT_EQ(ranks, (std::vector<size_t>{2, 1, 3, 4}));
  const double tokens = 1e12;
  const double seconds = tokens / (static_cast<double>(plan.question.global_batch) * 1024) *
                         best[0].expected().value();
  EXPECT_NEAR(budget_of(plan.question, best[0], tokens).days, seconds / 86400, 1e-9 * seconds);
  const std::string text = plan_table({&plan, 1}, {});
  EXPECT_NE(text.find("the first 2 were run again with contention"), std::string::npos) << text;
  EXPECT_NE(text.find("is number 2 with contention"), std::string::npos) << text;
}

TEST(Plan, SaysWhichDivisionsAnOddBatchLeavesOut) {
  ClusterPlan plan = small("80 GiB");
  EXPECT_EQ(plan_space(plan.question).divisions.uneven, 0U);
  plan.question.global_batch = 66;
  plan.question.axes.schedules = {"1f1b"};
  plan.result = pipesim::plan(plan.question, {});
  // Two of the data ranks 1, 2, 4, 8 and 16 divide 66.
  EXPECT_EQ(plan.result.divisions.all, 5U);
  EXPECT_EQ(plan.result.divisions.uneven, 3U);
  EXPECT_NE(plan_table({&plan, 1}, {})
                .find("3 of 5 divisions of the GPUs have data ranks that do "
                      "not divide the global batch of 66, and are not tried; "
                      "a multiple of 16 loses none"),
            std::string::npos);
}

TEST(Plan, OffloadsOnlyWhereALayoutDoesNotFitWithout) {
  ClusterPlan plan = small("6 GiB");
  const auto points = plan_space(plan.question).points;
  for (const Planned& planned : pipesim::plan(plan.question, {.best = 25}).best) {
    if (!planned.point.offload) continue;
    const Scenario without = scenario_of(plan.question, points[planned.id - 1], planned.balanced());
    EXPECT_GT(*simulate(prepare_first(without)).report.peak_memory, plan.question.surely_within());
  }
}

TEST(Plan, RefusesWhatIsPlannedWithTheWayToNarrowIt) {
  const auto message = [](const std::string& path) {
    try {
      ask({{"model", "zb-1.5b"}, {"cluster", "dgx-a100"}, {path, "1"}});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("parallel.tensor_model_parallel_size").find("it is planned"),
            std::string::npos);
  EXPECT_NE(message("memry.dropout").find("did you mean 'memory'"), std::string::npos)
      << message("memry.dropout");
}

TEST(Plan, MayTakeARunWithoutOffloadAsABound) {
  const ClusterPlan plan = small("80 GiB");
  size_t runs = 0;
  for (PlanPoint point : plan_space(plan.question).points) {
    if (!point.offload || point.split == PlanSplit::kBalanced) continue;
    try {
      const Report with = simulate(prepare_first(scenario_of(plan.question, point))).report;
      point.offload = false;
      const Report without = simulate(prepare_first(scenario_of(plan.question, point))).report;
      EXPECT_GE(with.iteration, without.iteration) << label_of(point);
      ++runs;
    } catch (const InputError&) {
      continue;  // refused by the schedule
    } catch (const InfeasibleError&) {
      continue;  // its rules have no plan
    }
  }
  EXPECT_GT(runs, 10U);
}

// Schedules that copy by themselves run in the same order with activations that stay.
TEST(Plan, MayTakeARunWithoutTheCopiesOfAScheduleAsABound) {
  ClusterPlan plan = small("80 GiB");
  plan.question.axes.schedules = {"po-f", "po-h"};
  size_t runs = 0;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    Scenario scenario = scenario_of(plan.question, point);
    ScheduleChoice& choice = scenario.schedules.front();
    try {
      const Report with = simulate(prepare_first(Scenario(scenario))).report;
      choice.name = point.schedule->without_offload;
      choice.options = point.schedule->without_offload_options;
      const Report without = simulate(prepare_first(std::move(scenario))).report;
      EXPECT_GE(with.iteration, without.iteration) << label_of(point);
      ++runs;
    } catch (const InputError&) {
      continue;  // refused by the schedule
    } catch (const InfeasibleError&) {
      continue;  // its link is too slow for PipeOffload's rules
    }
  }
  EXPECT_GT(runs, 10U);
}

TEST(RunBound, IsNeverAboveTheRun) {
  for (const ClusterPlan& plan : {small("80 GiB"), experts()}) {
    const auto points = plan_space(plan.question).points;
    size_t runs = 0;
    for (size_t i = 0; i < points.size(); i += 2) {
      if (points[i].split == PlanSplit::kBalanced) continue;
      if (testing::bounds_hold(plan.question, points[i])) ++runs;
    }
    EXPECT_GT(runs, 30U);
  }
}

TEST(RunBound, MeetsThePlainPipelinesTime) {
  ClusterPlan plan = small("80 GiB");
  plan.question.axes.schedules = {"1f1b"};
  plan.question.axes.tensor = {1};
  plan.question.axes.splits = {PlanSplit::kEven};
  plan.question.axes.vocabulary = {VocabularyPlacement::kFirstLast};
  plan.question.axes.recompute = {RecomputeGranularity::kNone};
  plan.question.axes.offload = {false};
  for (const PlanPoint& point : plan_space(plan.question).points) {
    const Case made = prepare_first(scenario_of(plan.question, point));
    const Seconds run = simulate(made).report.iteration;
    EXPECT_GE(run_bound(made).iteration, 0.97 * run) << point.pipeline;
  }
}

}  // namespace
}  // namespace pipesim::plan_test
