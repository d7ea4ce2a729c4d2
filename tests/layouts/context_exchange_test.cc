// Plans that choose how context ranks exchange keys and values.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "sim/case/simulate.h"
#include "sim/layouts/question.h"
#include "sim/layouts/report.h"
#include "sim/layouts/runs_on.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/layouts/bounds.h"

namespace pipesim::context_exchange_test {
namespace {

ClusterPlan ask_exchange(const std::string& model) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : std::vector<std::pair<std::string, std::string>>{
           {"model", model}, {"cluster", "dgx-h100"}, {"batch.seq_length", "65536"}}) {
    overrides.push_back({path, value, {"command line", 1, 1, ""}});
  }
  ClusterPlan plan = read_plan_question(overrides);
  plan.question.gpus = 32;
  plan.question.global_batch = 32;
  PlanAxes& axes = plan.question.axes;
  axes.tensor = {1, 2};
  axes.context = {1, 8, 16};
  axes.pipeline = {1, 2};
  axes.micro_batch = {1};
  axes.schedules = {"1f1b"};
  axes.vocabulary = {VocabularyPlacement::kFirstLast};
  axes.recompute = {RecomputeGranularity::kNone, RecomputeGranularity::kFull};
  axes.offload = {false};
  axes.exchange = {ContextExchange::kAllGather, ContextExchange::kRing, ContextExchange::kHeads,
                   ContextExchange::kHeadsAndRing};
  return plan;
}

// Eight key heads go to eight ranks that divide heads, tensor ranks among them.
TEST(PlanExchanges, AreThoseThatHeadsDivideInto) {
  const ClusterPlan plan = ask_exchange("llama3-8b");
  std::set<std::string> of_eight, of_sixteen;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    EXPECT_EQ(point.exchange.has_value(), point.context > 1) << label_of(point);
    if (!point.exchange || point.split != PlanSplit::kEven) continue;
    if (point.recompute != RecomputeGranularity::kNone || point.pipeline > 1) continue;
    if (point.context == 8 && point.tensor == 1) of_eight.insert(label_of(point));
    if (point.context == 16 && point.tensor == 2) of_sixteen.insert(label_of(point));
  }
  EXPECT_EQ(of_eight, (std::set<std::string>{"1f1b: all_gather", "1f1b: p2p", "1f1b: a2a",
                                             "1f1b: a2a+p2p 2x4", "1f1b: a2a+p2p 4x2"}));
  EXPECT_EQ(of_sixteen, (std::set<std::string>{"1f1b: all_gather", "1f1b: p2p", "1f1b: a2a+p2p 2x8",
                                               "1f1b: a2a+p2p 4x4"}));
}

TEST(PlanExchanges, FindWhatTheyFindExhaustively) {
  const ClusterPlan plan = ask_exchange("llama3-8b");
  const PlanResult quick = pipesim::plan(plan.question, {.best = 8});
  const PlanResult all = pipesim::plan(plan.question, {.best = 8, .exhaustive = true});
  ASSERT_EQ(quick.best.size(), 8U);
  for (size_t i = 0; i < quick.best.size(); ++i) EXPECT_EQ(quick.best[i].id, all.best[i].id);
}

// The best of all kinds is the best of the plans for each.
TEST(PlanExchanges, AreAsGoodAsTheBestOfOne) {
  ClusterPlan plan = ask_exchange("llama3-8b");
  const Planned best = pipesim::plan(plan.question, {}).best.front();
  std::vector<Seconds> alone;
  for (const ContextExchange kind : std::vector(plan.question.axes.exchange)) {
    plan.question.axes.exchange = {kind};
    alone.push_back(pipesim::plan(plan.question, {}).best.front().iteration);
  }
  EXPECT_EQ(best.iteration, std::ranges::min(alone));
  EXPECT_LT(best.iteration, alone.front());
}

TEST(PlanExchanges, AreWrittenAndRunAsPlanned) {
  ClusterPlan plan = ask_exchange("llama3-8b");
  plan.result = pipesim::plan(plan.question, {.best = 12});
  std::set<std::string> kinds;
  for (const Planned& planned : plan.result.best) {
    const std::string text = plan_scenario(plan, planned);
    const Result run = simulate(prepare_first(read_scenario(YamlSource("planned.yaml", text))));
    EXPECT_EQ(run.report.iteration, planned.iteration) << text;
    if (!planned.point.exchange) continue;
    const std::string kind(to_text(planned.point.exchange->kind));
    kinds.insert(kind);
    EXPECT_NE(text.find("cp_comm_type: " + kind + "\n"), std::string::npos) << text;
    const Configuration flags = configuration_of(Framework::kMegatron, plan.question, planned);
    EXPECT_NE(flags.text.find("--cp-comm-type " + kind), std::string::npos) << flags.text;
    const Configuration bridge =
        configuration_of(Framework::kMegatronBridge, plan.question, planned);
    EXPECT_NE(bridge.text.find("cp_comm_type: " + kind), std::string::npos) << bridge.text;
  }
  EXPECT_GT(kinds.size(), 1U);
  const std::string csv = plan_csv({&plan, 1}, {});
  EXPECT_NE(csv.find(",cp_comm_type,moe_dispatcher,overlap_moe_expert_parallel_comm,idea\n"),
            std::string::npos);
  EXPECT_NE(csv.find(",a2a+p2p 8x2,"), std::string::npos) << csv;
}

TEST(PlanExchanges, BoundsAreNeverAboveTheRun) {
  const ClusterPlan plan = ask_exchange("llama3-8b");
  size_t runs = 0;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (point.split == PlanSplit::kBalanced) continue;
    if (testing::bounds_hold(plan.question, point)) ++runs;
  }
  EXPECT_GT(runs, 20U);
}

// Transformer Engine has latent attention in rings alone.
TEST(PlanExchanges, OfLatentAttentionRunInRings) {
  ClusterPlan plan = ask_exchange("deepseek-v2");
  plan.question.axes.splits = {PlanSplit::kEven};
  size_t rings = 0, others = 0;
  for (const PlanPoint& point : plan_space(plan.question).points) {
    if (!point.exchange || !may_run(Framework::kMegatron, plan.question, point)) continue;
    const ContextExchange kind = point.exchange->kind;
    const bool ring = kind == ContextExchange::kRing || kind == ContextExchange::kHeadsAndRing;
    ++(ring ? rings : others);
  }
  EXPECT_GT(rings, 0U);
  EXPECT_EQ(others, 0U);
}

}  // namespace
}  // namespace pipesim::context_exchange_test
