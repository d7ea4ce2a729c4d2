// Plans that choose what data ranks divide.
#include <algorithm>
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/layouts/bound.h"
#include "sim/layouts/question.h"
#include "sim/layouts/report.h"
#include "sim/layouts/runs_on.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"
#include "tests/layouts/bounds.h"

namespace pipesim::sharding_test {
namespace {

const std::vector<ShardingStrategy> kAll{ShardingStrategy::kNoShard, ShardingStrategy::kOptim,
                                         ShardingStrategy::kOptimGrads,
                                         ShardingStrategy::kOptimGradsParams};

ClusterPlan ask(const std::string& capacity, const std::vector<PlanSetting>& more = {}) {
  std::vector<PlanSetting> settings{{"model", "llama3-8b"},
                                    {"cluster", "dgx-h100"},
                                    {"batch.seq_length", "4096"},
                                    {"memory.capacity", capacity}};
  settings.insert(settings.end(), more.begin(), more.end());
  std::vector<Override> overrides;
  for (const PlanSetting& setting : settings) {
    overrides.push_back({setting.path, setting.value, {"command line", 1, 1, ""}});
  }
  ClusterPlan plan = read_plan_question(overrides);
  plan.question.gpus = 32;
  plan.question.global_batch = 64;
  plan.question.axes.tensor = {1, 2};
  plan.question.axes.context = {1};
  plan.question.axes.chunks = {2};
  plan.question.axes.micro_batch = {1};
  plan.question.axes.schedules = {"1f1b", "interleaved-1f1b", "zb-h1"};
  plan.question.axes.offload = {false};
  plan.question.axes.sharding = kAll;
  return plan;
}

std::vector<size_t> ids(const PlanResult& result) {
  std::vector<size_t> all;
  for (const Planned& planned : result.best) all.push_back(planned.id);
  return all;
}

TEST(PlanSharding, ExhaustiveFindsTheSameBest) {
  for (const ClusterPlan& plan : {ask("70 GiB"), ask("24 GiB")}) {
    const PlanResult quick = pipesim::plan(plan.question, {.best = 8});
    const PlanResult all = pipesim::plan(plan.question, {.best = 8, .exhaustive = true});
    EXPECT_EQ(ids(quick), ids(all));
    EXPECT_FALSE(quick.best.empty());
  }
}

TEST(PlanSharding, WritesScenariosThatRunAsPlanned) {
  for (ClusterPlan plan :
       {ask("24 GiB"), ask("24 GiB", {{"memory.data_parallel_shard_degree", "8"}})}) {
    plan.result = pipesim::plan(plan.question, {.best = 12, .exhaustive = true});
    ASSERT_FALSE(plan.result.best.empty());
    for (const Planned& planned : plan.result.best) {
      const std::string text = plan_scenario(plan, planned);
      const Result run = simulate(prepare_first(read_scenario(YamlSource("planned.yaml", text))));
      EXPECT_EQ(run.report.iteration, planned.iteration) << text;
      EXPECT_EQ(*run.report.peak_memory, planned.peak) << text;
    }
  }
}

TEST(PlanSharding, BoundsAreNeverAboveTheRun) {
  const ClusterPlan plan = ask("70 GiB");
  size_t runs = 0;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    if (testing::bounds_hold(plan.question, point)) ++runs;
  }
  EXPECT_GT(runs, 100U);
}

// 8 billion parameters of 18 bytes take 134 GiB: four ranks of 24 GiB need all of them divided.
TEST(PlanSharding, FindsWhatFitsOnlyDivided) {
  ClusterPlan plan = ask("24 GiB");
  plan.question.axes.tensor = {1};
  plan.question.axes.pipeline = {1};
  plan.question.axes.sharding = {ShardingStrategy::kOptim};
  EXPECT_TRUE(pipesim::plan(plan.question, {}).best.empty());
  plan.question.axes.sharding = kAll;
  const PlanResult result = pipesim::plan(plan.question, {});
  ASSERT_FALSE(result.best.empty());
  for (const Planned& planned : result.best) {
    EXPECT_EQ(planned.point.sharding, ShardingStrategy::kOptimGradsParams);
  }
}

TEST(PlanSharding, OfARankThatIsAloneIsTriedOnce) {
  ClusterPlan plan = ask("70 GiB");
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.data > 1) continue;
    EXPECT_EQ(point.sharding, ShardingStrategy::kNoShard) << label_of(point);
  }
}

TEST(PlanSharding, RunsOnWhatHasFlags) {
  const ClusterPlan plan = ask("70 GiB");
  size_t sharded = 0;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    for (const Framework framework : kFrameworks) {
      if (!may_run(framework, plan.question, point)) continue;
      try {
        Planned planned;
        planned.point = point;
        const auto run = frameworks_of(plan.question, planned);
        EXPECT_GT(std::ranges::count(run, framework), 0)
            << to_text(framework) << ": " << label_of(point) << ", " << sizes_of(point);
        if (point.sharding >= ShardingStrategy::kOptimGrads) ++sharded;
      } catch (const InputError&) {
      } catch (const InfeasibleError&) {
      }
    }
  }
  EXPECT_GT(sharded, 0U);
}

}  // namespace
}  // namespace pipesim::sharding_test
