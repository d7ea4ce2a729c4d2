// How a plan runs mixtures of experts: what sends tokens, and what runs beside their exchange.
#include <array>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/layouts/plan.h"
#include "sim/layouts/question.h"
#include "sim/layouts/report.h"
#include "sim/layouts/runs_on.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/layouts/bounds.h"

namespace pipesim::plan_experts_test {
namespace {

ClusterPlan ask(const std::vector<PlanSetting>& more = {}) {
  std::vector<Override> overrides;
  std::vector<PlanSetting> settings{
      {"model", "mixtral-8x7b"}, {"cluster", "dgx-h100"}, {"batch.seq_length", "4096"}};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const auto& [path, value] : settings) {
    overrides.push_back({path, value, {"command line", 1, 1, ""}});
  }
  ClusterPlan plan = read_plan_question(overrides);
  PlanAxes& axes = plan.question.axes;
  plan.question.gpus = 32;
  plan.question.global_batch = 128;
  axes.tensor = {1, 2};
  axes.context = {1};
  axes.pipeline = {1, 4};
  axes.chunks = {2};
  axes.micro_batch = {1};
  axes.schedules = {"1f1b", "interleaved-1f1b"};
  axes.recompute = {RecomputeGranularity::kNone, RecomputeGranularity::kFull};
  axes.offload = {false};
  return plan;
}

void expect_runs_as_planned(const ClusterPlan& plan, const Planned& row) {
  const std::string text = plan_scenario(plan, row);
  const Result again = simulate(prepare_first(read_scenario(YamlSource("planned.yaml", text))));
  EXPECT_EQ(again.report.iteration, row.iteration) << text;
  EXPECT_EQ(*again.report.peak_memory, row.peak) << text;
}

TEST(PlanExperts, OverlapIsSearchedWithAndWithoutAPipeline) {
  const ClusterPlan plan = ask();
  const PlanResult quick = pipesim::plan(plan.question, {.best = 30});
  const PlanResult all = pipesim::plan(plan.question, {.best = 30, .exhaustive = true});
  ASSERT_EQ(quick.best.size(), all.best.size());
  std::set<int> overlapping;  // by stages
  for (size_t i = 0; i < quick.best.size(); ++i) {
    const Planned& row = quick.best[i];
    EXPECT_EQ(row.id, all.best[i].id);
    if (!row.point.expert_overlap) continue;
    overlapping.insert(row.point.pipeline);
    EXPECT_NE(label_of(row.point).find("expert overlap"), std::string::npos);
    EXPECT_GT(std::ranges::count(row.runs_on, Framework::kMegatron), 0) << label_of(row.point);
    expect_runs_as_planned(plan, row);
    const std::string flags = configuration_of(Framework::kMegatron, plan.question, row).text;
    EXPECT_NE(flags.find("--overlap-moe-expert-parallel-comm"), std::string::npos) << flags;
    EXPECT_NE(flags.find("--delay-wgrad-compute"), std::string::npos) << flags;
    EXPECT_EQ(flags.find("--num-virtual-stages-per-pipeline-rank") != std::string::npos,
              row.point.pipeline > 1)
        << flags;
  }
  EXPECT_EQ(overlapping, (std::set<int>{1, 4}));
}

TEST(PlanExperts, BoundsOfOverlapHold) {
  int overlapping = 0;
  for (const PlanPoint& point : plan_space(ask().question).points) {
    if (!point.expert_overlap || point.split == PlanSplit::kBalanced) continue;
    overlapping += testing::bounds_hold(ask().question, point) ? 1 : 0;
  }
  EXPECT_GT(overlapping, 10);
}

// The host launches experts in fp8 one by one, and B and W of one pass wait for it together.
TEST(PlanExperts, BoundsHoldWhereTheHostIsLate) {
  PlanQuestion question = ask({{"model", "qwen3-30b-a3b"},
                               {"memory.precision", "fp8"},
                               {"cost.moe_token_dispatcher_type", "flex"}})
                              .question;
  question.axes.micro_batch = {1, 2, 4};
  question.axes.expert_overlap = {false};
  int held = 0;
  for (const PlanPoint& point : plan_space(question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    held += testing::bounds_hold(question, point) ? 1 : 0;
  }
  EXPECT_GT(held, 100);
}

TEST(PlanExperts, OverlapNeedsRanksOfExpertsAndRecomputesNoWholeLayer) {
  for (const PlanPoint& point : plan_space(ask().question).points) {
    if (!point.expert_overlap) continue;
    EXPECT_GT(point.expert, 1);
    EXPECT_NE(point.recompute, RecomputeGranularity::kFull);
    PlanQuestion old = ask({{"cost.software", "megatron-core-0.12"}}).question;
    EXPECT_FALSE(may_run(Framework::kMegatron, old, point)) << label_of(point);
  }
  PlanQuestion without = ask().question;
  without.axes.expert_overlap = {false};
  for (const PlanPoint& point : plan_space(without).points) EXPECT_FALSE(point.expert_overlap);
}

TEST(PlanExperts, LaterDispatchersAreNoSlowerAndARankWithAllExpertsHasNone) {
  ClusterPlan plan = ask({{"cost.moe_token_dispatcher_type", "flex"}});
  plan.question.axes.dispatchers = {ExpertDispatcher::kAllToAll, ExpertDispatcher::kDeepEp,
                                    ExpertDispatcher::kHybridEp};
  plan.question.axes.pipeline = {4};
  plan.result = pipesim::plan(plan.question, {.best = 500, .exhaustive = true});
  std::map<std::string, std::array<Seconds, 3>> seconds;
  for (const Planned& row : plan.result.best) {
    if (!row.point.dispatcher) {
      EXPECT_EQ(dispatcher_of(plan.question, row.point), ExpertDispatcher::kAllToAll);
      EXPECT_EQ(row.point.expert * row.point.expert_tensor, 1);
    } else {
      PlanPoint point = row.point;
      point.dispatcher.reset();
      const auto dispatcher = static_cast<size_t>(*row.point.dispatcher);
      seconds[label_of(point) + sizes_of(point)].at(dispatcher) = row.iteration;
    }
    expect_runs_as_planned(plan, row);
  }
  EXPECT_GT(seconds.size(), 10U);
  for (const auto& [layout, each] : seconds) {
    EXPECT_GE(each[0], each[1]) << layout;
    EXPECT_GE(each[1], each[2]) << layout;
  }
  std::ostringstream text;
  write_plan_json(text, {&plan, 1}, 1e12, "test");
  const auto layouts = nlohmann::json::parse(text.str())["plans"][0]["layouts"];
  EXPECT_EQ(layouts[0]["switches"]["moe_token_dispatcher_type"], "flex");
  EXPECT_EQ(layouts[0]["switches"]["delay_wgrad_compute"],
            plan.result.best.front().point.expert_overlap);
}

// Flags of an export run on the cluster that was asked about.
TEST(PlanExperts, AreSentByAllToAllWhereNoNvlinkJoinsANode) {
  for (const auto& [cluster, dispatcher] : {std::pair("rtx-5090-nodes", "alltoall"),
                                            {"mi300x-platform", "alltoall"},
                                            {"dgx-h100", "flex"},
                                            {"hgx-b200", "flex"}}) {
    const PlanQuestion question = ask({{"cluster", cluster}}).question;
    std::string set = "alltoall";
    bool backend = false;
    for (const PlanSetting& each : tuned_switches(std::nullopt, question, {})) {
      if (each.path == "cost.moe_token_dispatcher_type") set = each.value;
      backend = backend || each.path == "cost.moe_flex_dispatcher_backend";
    }
    EXPECT_EQ(set, dispatcher) << cluster;
    EXPECT_EQ(backend, std::string_view(cluster) == "hgx-b200") << cluster;
  }
}

TEST(PlanExperts, AreSentByHybridEpInARack) {
  const PlanQuestion rack =
      ask({{"cluster", "gb200-nvl72"}, {"cost.moe_token_dispatcher_type", "flex"}}).question;
  EXPECT_EQ(rack.dispatcher, ExpertDispatcher::kHybridEp);
}

// Beyond ten chunks only those numbers count that leave the longest chunk fewer layers.
TEST(PlanExperts, ChunksReachOneLayerEach) {
  ClusterPlan plan = ask();
  plan.question.axes.pipeline = {2};
  plan.question.axes.chunks = {};
  std::set<int> tried;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.schedule->name == "interleaved-1f1b") tried.insert(point.chunks);
  }
  EXPECT_EQ(tried, (std::set<int>{2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17}));
}

}  // namespace
}  // namespace pipesim::plan_experts_test
