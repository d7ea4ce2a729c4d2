// Frameworks for a plan's layouts, and the layouts that plans are compared with.
#include "sim/layouts/runs_on.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/layouts/baseline.h"
#include "sim/layouts/difference.h"
#include "sim/layouts/plan.h"
#include "sim/layouts/question.h"
#include "sim/layouts/report.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::runs_on_test {
namespace {

ClusterPlan ask(const std::string& model, int gpus, long batch, const std::string& seq_length,
                const std::vector<FrameworkDefault>& more = {}) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : std::vector<std::pair<std::string, std::string>>{
           {"model", model}, {"cluster", "dgx-h100"}, {"batch.seq_length", seq_length}}) {
    overrides.push_back({path, value, {"command line", 1, 1, ""}});
  }
  for (const auto& [path, value] : more) {
    overrides.push_back({path, value, {"command line", 1, 1, ""}});
  }
  ClusterPlan plan = read_plan_question(overrides);
  plan.question.gpus = gpus;
  plan.question.global_batch = batch;
  plan.question.axes.chunks = {2, 5};
  return plan;
}

// Whatever the filter lets through and can be run at all has a configuration.
TEST(RunsOn, LetsOnlyThroughWhatHasAConfiguration) {
  for (const auto& [model, seq_length] : std::vector<std::pair<std::string, std::string>>{
           {"llama3-8b", "4096"}, {"gpt-oss-20b", "4096"}, {"mixtral-8x7b", "4096"}}) {
    for (const Framework framework : kFrameworks) {
      ClusterPlan plan = ask(model, 16, 64, seq_length);
      if (framework == Framework::kTorchtitan) {
        plan = ask(model, 16, 64, seq_length, defaults_of(framework));
        plan.question.axes.runs_on = framework;
      }
      const std::vector<PlanPoint> points = plan_space(plan.question).points;
      const std::string why = why_it_runs_none(framework, plan.question);
      size_t passed = 0;
      for (size_t id = 0; id < points.size(); id += 7) {
        if (!why.empty() || !may_run(framework, plan.question, points[id])) continue;
        if (points[id].split == PlanSplit::kBalanced) continue;  // needs its layout
        try {
          Planned planned;
          planned.point = points[id];
          const auto run = frameworks_of(plan.question, planned);
          EXPECT_GT(std::ranges::count(run, framework), 0)
              << to_text(framework) << ": " << label_of(points[id]) << ", " << sizes_of(points[id]);
          ++passed;
        } catch (const InputError&) {
        } catch (const InfeasibleError&) {
        }
      }
      EXPECT_EQ(passed == 0, !why.empty()) << model << " on " << to_text(framework) << why;
    }
  }
}

TEST(RunsOn, APlanForAFrameworkNamesItsLayoutsAlone) {
  for (const Framework framework : kFrameworks) {
    ClusterPlan plan = ask("llama3-8b", 16, 64, "4096", defaults_of(framework));
    plan.question.axes.runs_on = framework;
    plan.result = pipesim::plan(plan.question, {.best = 5});
    ASSERT_EQ(plan.result.best.size(), 5U);
    for (const Planned& planned : plan.result.best) {
      EXPECT_GT(std::ranges::count(planned.runs_on, framework), 0) << label_of(planned.point);
    }
  }
}

// Without a pipeline weights are freed after a forward, in one they stay, unless it is asked for.
TEST(RunsOn, APlanForTorchtitanFreesWeightsAsItDoesByDefault) {
  const auto question = [](const std::vector<FrameworkDefault>& more) {
    std::vector<FrameworkDefault> settings = defaults_of(Framework::kTorchtitan);
    settings.insert(settings.end(), more.begin(), more.end());
    ClusterPlan plan = ask("llama3-8b", 16, 64, "4096", settings);
    plan.question.axes.runs_on = Framework::kTorchtitan;
    plan.question.axes.tensor = {1};
    plan.question.axes.schedules = {"1f1b"};
    plan.question.axes.recompute = {RecomputeGranularity::kNone};
    return plan;
  };
  for (const bool always : {false, true}) {
    ClusterPlan plan =
        question(always ? std::vector<FrameworkDefault>{{"memory.reshard_after_forward", "true"}}
                        : std::vector<FrameworkDefault>{});
    plan.question.axes.pipeline = {1, 2, 4};
    plan.result = pipesim::plan(plan.question, {.best = 40, .exhaustive = true});
    int staged = 0;
    for (const Planned& planned : plan.result.best) {
      const bool alone = planned.point.pipeline == 1;
      EXPECT_EQ(state_of(plan.question, planned.point).reshard_after_forward, always || alone);
      const std::string file =
          configuration_of(Framework::kTorchtitan, plan.question, planned).text;
      const bool usual = !always || alone;
      EXPECT_NE(file.find(usual ? "fsdp_reshard_after_forward = \"default\""
                                : "fsdp_reshard_after_forward = \"always\""),
                std::string::npos)
          << file;
      staged += alone ? 0 : 1;
    }
    EXPECT_GT(staged, 0);
  }
}

// Whatever its data ranks divide and reduce stands in the scenario.
TEST(RunsOn, APlanForTorchtitanIsWrittenAsItRuns) {
  ClusterPlan plan = ask("llama3-8b", 16, 64, "4096", defaults_of(Framework::kTorchtitan));
  plan.question.axes.runs_on = Framework::kTorchtitan;
  plan.question.axes.pipeline = {2, 4};
  plan.question.axes.tensor = {4, 8};
  plan.result = pipesim::plan(plan.question, {.best = 40, .exhaustive = true});
  int alone = 0, several = 0;
  for (const Planned& planned : plan.result.best) {
    const std::string text = plan_scenario(plan, planned);
    const Result run = simulate(prepare_first(read_scenario(YamlSource("planned.yaml", text))));
    EXPECT_EQ(run.report.iteration, planned.iteration) << text;
    EXPECT_EQ(*run.report.peak_memory, planned.peak) << text;
    ++(planned.point.data * planned.point.context == 1 ? alone : several);
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(several, 0);
}

TEST(Baseline, IsTheUsualLayoutThatFits) {
  const ClusterPlan plan = ask("llama3-70b", 64, 128, "8192");
  const auto usual = usual_layout(plan.question);
  ASSERT_TRUE(usual.has_value());
  EXPECT_EQ(sizes_of(usual->point), "tp 8, cp 1, pp 2, vpp 5, dp 4, mbs 1");
  EXPECT_LE(usual->peak, plan.question.limit());
  EXPECT_FALSE(usual->runs_on.empty());
  EXPECT_FALSE(usual_layout(ask("llama3.1-405b", 8, 128, "8192").question).has_value());
}

TEST(Baseline, IsTheNearestPublishedRun) {
  const ClusterPlan plan = ask("llama3-70b", 64, 128, "8192");
  const auto published = published_layout(plan.question);
  ASSERT_TRUE(published.has_value());
  EXPECT_EQ(published->run, "dgxc_Llama_3.1_70B_bf16_H100_64_v25.04.01_gbs128");
  EXPECT_FALSE(published_layout(ask("llama2-7b", 64, 128, "4096").question).has_value())
      << "nobody published one";
}

// 61 layers divide over no number of stages, and the published run says nothing of recomputation.
TEST(Baseline, DividesWhatHasNoEvenStages) {
  ClusterPlan plan = ask("deepseek-v3", 2048, 15360, "4096");
  plan.question.axes.chunks.clear();
  const auto published = published_layout(plan.question);
  ASSERT_TRUE(published.has_value());
  EXPECT_EQ(published->run, "dgxc_DeepSeek-V3_671B_bf16_H100_512_v25.05.04_gbs4096");
  EXPECT_EQ(sizes_of(published->planned.point),
            "tp 2, cp 1, ep 64, etp 1, pp 8, vpp 1, dp 128, mbs 1");
  const auto usual = usual_layout(plan.question);
  ASSERT_TRUE(usual.has_value());
  EXPECT_EQ(usual->point.split, PlanSplit::kBalanced);
  EXPECT_LE(usual->point.expert * usual->point.expert_tensor, 8) << "within a node";
}

TEST(Baseline, StaysWithinTheNarrowedQuestion) {
  ClusterPlan plan = ask("llama3-70b", 64, 128, "8192");
  plan.question.axes.runs_on = Framework::kMegatron;
  plan.question.axes.tensor = {2};
  plan.question.axes.micro_batch = {2};
  EXPECT_FALSE(published_layout(plan.question).has_value()) << "it has 4 tensor ranks";
  const auto usual = usual_layout(plan.question);
  ASSERT_TRUE(usual.has_value());
  EXPECT_EQ(usual->point.tensor, 2);
  EXPECT_EQ(usual->point.micro_batch, 2);
  const PlanResult found = pipesim::plan(plan.question, {.best = 1});
  ASSERT_FALSE(found.best.empty());
  EXPECT_LE(found.best.front().iteration, usual->iteration);
}

// Megatron-LM trains both; it has no norms behind attention and MLP, and says so.
TEST(RunsOn, MegatronHasFlagsForLinearAttentionAndLeavesOutNorms) {
  for (const auto& [model, says] : std::vector<std::pair<std::string, std::string>>{
           {"qwen3-next-80b-a3b", "--linear-attention-freq 4"},
           {"grok-1", "left out: norms after attention and MLP"}}) {
    ClusterPlan plan = ask(model, 128, 512, "4096");
    plan.question.axes.runs_on = Framework::kMegatron;
    plan.question.axes.schedules = {"1f1b"};
    plan.question.axes.tensor = {2};
    plan.question.axes.expert = {8};
    plan.question.axes.micro_batch = {1};
    EXPECT_EQ(why_it_runs_none(Framework::kMegatron, plan.question), "");
    const PlanResult found = pipesim::plan(plan.question, {.best = 1});
    ASSERT_FALSE(found.best.empty()) << model;
    const Planned& first = found.best.front();
    const std::string text = configuration_of(Framework::kMegatron, plan.question, first).text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  }
}

// Megatron-Core has a flag for the layers of each stage since 0.13.
TEST(RunsOn, OldReleasesPlaceLayersEvenly) {
  const auto runs = [](const char* software) {
    const ClusterPlan plan = ask("llama3-70b", 64, 128, "8192", {{"cost.software", software}});
    const std::vector<PlanPoint> points = plan_space(plan.question).points;
    return std::ranges::count_if(points, [&](const PlanPoint& point) {
      return point.split == PlanSplit::kBalanced &&
             may_run(Framework::kMegatron, plan.question, point);
    });
  };
  EXPECT_EQ(runs("megatron-core-0.12"), 0);
  EXPECT_GT(runs("megatron-core"), 0);
  EXPECT_GT(runs("megatron-core-2026"), 0);
}

TEST(Baseline, OfAScenarioIsHeldAgainstTheSameQuestion) {
  const ClusterPlan plan = ask("llama3-8b", 16, 64, "4096");
  const auto read = [](const std::string& batch, const std::string& schedule) {
    return read_scenario(YamlSource(
        "b.yaml", "model: llama3-8b\ncluster: dgx-h100\nschedule: " + schedule +
                      "\nparallel: {pipeline_model_parallel_size: 2, data_parallel_size: 8}\n"
                      "batch: {micro_batch_size: 1, seq_length: 4096, global_batch_size: " +
                      batch + "}\nmemory: {kind: model, use_distributed_optimizer: true}\n"));
  };
  const Planned baseline = baseline_of(plan.question, read("64", "1f1b"), {});
  EXPECT_EQ(baseline.point.data, 8);
  EXPECT_GT(baseline.iteration, Seconds(0));
  EXPECT_THROW((void)baseline_of(plan.question, read("128", "1f1b"), {}), InputError);
  EXPECT_THROW((void)baseline_of(plan.question, read("64", "[1f1b, gpipe]"), {}), InputError);
}

TEST(WhatIf, MoreOfAnythingIsNeverSlowerAndLessNeverFaster) {
  ClusterPlan plan = ask("llama3-8b", 16, 64, "4096");
  plan.question.axes.schedules = {"1f1b", "interleaved-1f1b", "zb-h1"};
  plan.result = pipesim::plan(plan.question, {.best = 1});
  ASSERT_EQ(plan.result.best.size(), 1U);
  plan.what_ifs = plan_what_ifs(plan.question, {});
  // With 16 GPUs in nodes of 8, only 1.5 and 2 times make whole nodes.
  ASSERT_EQ(plan.what_ifs.size(), 3 * kWhatIfFactors.size() + 2);
  const Seconds now = plan.result.best.front().iteration;
  const PlanWhatIf* before = nullptr;
  for (const PlanWhatIf& each : plan.what_ifs) {
    ASSERT_EQ(each.best.size(), 1U) << each.change();
    const Seconds then = each.best.front().iteration;
    if (each.factor < 1) {
      EXPECT_GE(then, now) << each.change();
    } else if (each.question.gpus != 24) {  // the batch is no multiple of all its divisions
      EXPECT_LE(then, now) << each.change();
      const bool same = before != nullptr && before->quantity == each.quantity;
      if (same && before->question.gpus != 24) {
        EXPECT_LE(then, before->best.front().iteration) << each.change();
      }
    }
    before = &each;
  }
  EXPECT_LT(plan.what_ifs.back().best.front().iteration, now);
  EXPECT_EQ(plan.what_ifs.back().question.gpus, 32);
  EXPECT_DOUBLE_EQ(plan.what_ifs.front().question.limit() / plan.question.limit(), 0.8);
  EXPECT_NE(what_ifs_text(plan).find("bandwidth within a node x 1.1: iteration -"),
            std::string::npos)
      << what_ifs_text(plan);
}

TEST(WhatIf, TakesTheFactorsThatItIsGiven) {
  ClusterPlan plan = ask("llama3-8b", 16, 64, "4096");
  plan.question.axes.schedules = {"1f1b"};
  plan.question.axes.micro_batch = {1};
  plan.result = pipesim::plan(plan.question, {.best = 1});
  const std::array factors{0.05, 0.5};
  plan.what_ifs = plan_what_ifs(plan.question, {}, factors);
  ASSERT_EQ(plan.what_ifs.size(), 7U);         // 0.05 of 16 GPUs are none
  EXPECT_TRUE(plan.what_ifs[0].best.empty());  // 4 GB
  EXPECT_EQ(plan.what_ifs.back().question.gpus, 8);
  const std::string text = what_ifs_text(plan);
  EXPECT_NE(text.find("memory of a GPU x 0.05: nothing fits"), std::string::npos) << text;
  EXPECT_NE(text.find("GPUs x 0.5: iteration +"), std::string::npos) << text;
  // A layout of the JSON is a whole row, by the question as it was changed.
  std::ostringstream out;
  write_plan_json(out, {&plan, 1}, std::nullopt, "1");
  const auto json = nlohmann::json::parse(out.str());
  const auto& what_ifs = json["plans"][0]["what_ifs"];
  EXPECT_EQ(what_ifs[0]["layout"], nullptr);
  EXPECT_EQ(what_ifs[6]["gpus"], 8);
  const auto& half = what_ifs[1]["layout"].is_null() ? what_ifs[3] : what_ifs[1];
  EXPECT_EQ(half["factor"], 0.5);
  EXPECT_DOUBLE_EQ(half["layout"]["headroom_bytes"].get<double>() +
                       half["layout"]["peak_memory_bytes"].get<double>(),
                   half["memory_limit_bytes"].get<double>());
}

TEST(Difference, PartsSumToTheSecondsBetweenTwoLayouts) {
  ClusterPlan plan = ask("llama3-8b", 16, 64, "4096");
  plan.result = pipesim::plan(plan.question, {.best = 10});
  const auto& best = plan.result.best;
  ASSERT_EQ(best.size(), 10U);
  for (const Planned& than : best) {
    for (const Planned& other : best) {
      const PlanDifference difference = difference_of(than, other);
      EXPECT_NEAR(difference.total().value(), (other.expected() - than.expected()).value(),
                  1e-9 * than.expected().value());
      EXPECT_EQ(difference.memory, other.peak - than.peak);
    }
  }
}

}  // namespace
}  // namespace pipesim::runs_on_test
