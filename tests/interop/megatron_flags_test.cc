#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/interop/configurations/bridge.h"
#include "sim/interop/megatron/flags.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::megatron_flags_test {
namespace {

Scenario scenario_of(const std::string& schedule, int devices = 4,
                     const std::string& batch = ", micro_batch_size: 3", int microbatches = 8) {
  return read_scenario(YamlSource(
      "s.yaml", "schedule: " + schedule +
                    "\nparallel: {pipeline_model_parallel_size: " + std::to_string(devices) +
                    ", tensor_model_parallel_size: 2, data_parallel_size: 5}\n"
                    "batch: {num_microbatches: " +
                    std::to_string(microbatches) + batch +
                    "}\ncost: {kind: given, forward: 1 ms, backward_input: 1 ms, "
                    "backward_weight: 1 ms, overlapped: 3 ms, copy_out: 1 ms, copy_in: 1 ms}\n"));
}

MegatronFlags flags_of(const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  return megatron_flags(made, *make_program(made));
}

std::string refusal_of(const Scenario& scenario) {
  try {
    (void)flags_of(scenario);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

bool has(const MegatronFlags& flags, const std::string& flag) {
  return std::ranges::find(flags.flags, flag) != flags.flags.end();
}

TEST(MegatronFlags, SayTheSizesAndTheBatch) {
  const MegatronFlags flags = flags_of(scenario_of("1f1b"));
  EXPECT_EQ(flags.runtime, "Megatron-LM");
  EXPECT_EQ(flags.flags, (std::vector<std::string>{
                             "--pipeline-model-parallel-size 4", "--tensor-model-parallel-size 2",
                             "--micro-batch-size 3", "--global-batch-size 120"}));
  EXPECT_EQ(megatron_text(flags),
            "# flags of Megatron-LM\n# start 40 processes: data parallel size 5\n"
            "--pipeline-model-parallel-size 4\n--tensor-model-parallel-size 2\n"
            "--micro-batch-size 3\n--global-batch-size 120\n");
}

TEST(MegatronFlags, SayWhatAModelIsDividedBy) {
  const Scenario scenario = read_scenario(YamlSource(
      "s.yaml",
      "schedule: 1f1b\nmodel: mixtral-8x7b\ncluster: dgx-h100\nparallel: "
      "{pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: true,\n"
      "  context_parallel_size: 2, expert_model_parallel_size: 4, expert_tensor_parallel_size: 1, "
      "data_parallel_size: 2}\n"
      "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n"
      "recompute: [core_attn, moe_act, mlp_act]\n"
      "memory: {kind: model, use_distributed_optimizer: true}\n"));
  const MegatronFlags flags = flags_of(scenario);
  for (const char* flag :
       {"--sequence-parallel", "--context-parallel-size 2", "--expert-model-parallel-size 4",
        "--expert-tensor-parallel-size 1", "--use-distributed-optimizer", "--seq-length 4096",
        "--cp-comm-type all_gather", "--recompute-granularity selective",
        "--recompute-modules core_attn moe_act", "--global-batch-size 16"}) {
    EXPECT_TRUE(has(flags, flag)) << flag << "\n" << megatron_text(flags);
  }
  EXPECT_EQ(flags.differences,
            std::vector<std::string>{"mlp_act recomputed, for which it has no flag"});
  EXPECT_TRUE(flags.notes.empty());
  EXPECT_EQ(flags.ranks.gpus, 32);
  EXPECT_EQ(flags.ranks.data, 2);
}

TEST(MegatronFlags, LeaveSequenceParallelismOutOnOneTensorRank) {
  for (const int tensor : {1, 2}) {
    const Scenario scenario = read_scenario(YamlSource(
        "s.yaml",
        fmt::format("schedule: 1f1b\nmodel: llama3-8b\ncluster: dgx-h100\nparallel: "
                    "{{pipeline_model_parallel_size: 2, tensor_model_parallel_size: {}, "
                    "sequence_parallel: true}}\n"
                    "batch: {{num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}}\n",
                    tensor)));
    EXPECT_EQ(has(flags_of(scenario), "--sequence-parallel"), tensor > 1) << tensor;
  }
}

TEST(MegatronFlags, NameTheExchangeOfEveryLayerWhereWindowsHaveTheirOwn) {
  const Scenario scenario = read_scenario(YamlSource(
      "s.yaml",
      "schedule: 1f1b\nmodel: {family: llama, num_layers: 4, hidden_size: 1024, "
      "num_attention_heads: 8, ffn_hidden_size: 4096, vocab_size: 32000, layer_pattern: WG, "
      "attention_window: 128}\ncluster: dgx-h100\nparallel: {pipeline_model_parallel_size: 2, "
      "context_parallel_size: 4, cp_comm_type: [a2a, p2p, a2a, p2p]}\n"
      "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n"));
  const MegatronFlags flags = flags_of(scenario);
  EXPECT_TRUE(has(flags, "--cp-comm-type a2a p2p a2a p2p")) << megatron_text(flags);
  EXPECT_NE(bridge_text(flags).find("cp_comm_type: [a2a, p2p, a2a, p2p]\n"), std::string::npos);
}

TEST(MegatronFlags, SayWhatIsRecomputedInFullAndWhatRunsBeside) {
  const std::string text =
      "model: llama3-70b\ncluster: dgx-h100\nparallel: {pipeline_model_parallel_size: 4, "
      "tensor_model_parallel_size: 8, sequence_parallel: true, data_parallel_size: 2}\n"
      "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n"
      "memory: {kind: model, use_distributed_optimizer: true}\n"
      "cost: {kind: roofline, tp_comm_overlap: true, overlap_grad_reduce: true, "
      "overlap_param_gather: true}\n";
  const auto read = [&](const std::string& schedule) {
    return read_scenario(YamlSource("s.yaml", schedule + text));
  };
  const MegatronFlags flags = flags_of(read("schedule: 1f1b\nrecompute: full\n"));
  for (const char* flag :
       {"--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1",
        "--tp-comm-overlap", "--overlap-grad-reduce", "--overlap-param-gather"}) {
    EXPECT_TRUE(has(flags, flag)) << flag << "\n" << megatron_text(flags);
  }
  EXPECT_NE(
      refusal_of(read("schedule: interleaved-1f1b\nrecompute: {granularity: full, chunks: 1}\n"))
          .find("do not place its R passes"),
      std::string::npos);
  EXPECT_NE(refusal_of(read("schedule: zb-h1\n")), "");
  EXPECT_NE(refusal_of(read("schedule: zb-1p\n")).find("the fork has no gathering"),
            std::string::npos);
}

TEST(MegatronFlags, SayWhatTheScenarioLeavesOpen) {
  const MegatronFlags flags = flags_of(scenario_of("1f1b", 4, ""));
  EXPECT_EQ(flags.notes.front(),
            "to set: --micro-batch-size, and --global-batch-size, which is 40 times it");
  EXPECT_EQ(flags.flags.size(), 2U);
}

TEST(MegatronFlags, FollowTheOptionsOfInterleaving) {
  const MegatronFlags flags = flags_of(
      scenario_of("{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 3, "
                  "microbatch_group_size_per_vp_stage: 8, overlap_moe_expert_parallel_comm: true, "
                  "delay_wgrad_compute: true, ep_overlap_early_attn_memory_release: true}"));
  EXPECT_TRUE(has(flags, "--num-virtual-stages-per-pipeline-rank 3"));
  EXPECT_TRUE(has(flags, "--microbatch-group-size-per-virtual-pipeline-stage 8"));
  EXPECT_TRUE(has(flags, "--overlap-moe-expert-parallel-comm"));
  EXPECT_TRUE(has(flags, "--delay-wgrad-compute"));
  EXPECT_TRUE(has(flags, "--ep-overlap-early-attn-memory-release"));
  EXPECT_EQ(flags_of(scenario_of("interleaved-1f1b")).flags.size(), 5U);
  EXPECT_NE(
      refusal_of(scenario_of("{name: interleaved-1f1b, zero_bubble_table5_dependencies: true}"))
          .find("no runtime skips"),
      std::string::npos);
  EXPECT_NE(refusal_of(scenario_of("interleaved-1f1b", 1)).find("two devices or more"),
            std::string::npos);
}

TEST(MegatronFlags, GiveZeroBubbleItsMemoryInMicrobatches) {
  const auto pending = [](const std::string& schedule) {
    const MegatronFlags flags = flags_of(scenario_of(schedule));
    EXPECT_TRUE(has(flags, "--enable-zero-bubble"));
    EXPECT_EQ(flags.runtime, "sail-sg/zero-bubble-pipeline-parallelism");
    return *std::ranges::find_if(flags.flags, [](const std::string& flag) {
      return flag.starts_with("--zero-bubble-max-pending-backward ");
    });
  };
  EXPECT_EQ(pending("zb-1p"), "--zero-bubble-max-pending-backward 4");
  EXPECT_EQ(pending("zb-2p"), "--zero-bubble-max-pending-backward 8");
  EXPECT_EQ(pending("zb"), "--zero-bubble-max-pending-backward 8");
  EXPECT_EQ(pending("{name: zb, memory_limit: 1.5}"), "--zero-bubble-max-pending-backward 6");
}

// A schedule whose record names a runtime has flags; any other is refused. Neither needs an edit
// here.
TEST(MegatronFlags, EveryScheduleHasThemOrAReason) {
  for (const Schedule* schedule : schedules()) {
    const Scenario scenario = scenario_of(schedule->name, 4, "", 12);
    const auto known = megatron_schedules();
    const bool listed = std::ranges::find(known, schedule->name) != known.end();
    const std::string refusal = refusal_of(scenario);
    EXPECT_EQ(refusal.empty(), listed) << schedule->name << ": " << refusal;
    if (listed) continue;
    EXPECT_TRUE(refusal.starts_with("no Megatron flags for " + schedule->name + ": ")) << refusal;
    EXPECT_NE(refusal.find("schedules with flags: 1f1b, "), std::string::npos) << refusal;
  }
}

// A model whose layers stand as `parallel` says.
MegatronFlags flags_with_layers(const std::string& schedule, const std::string& parallel) {
  return flags_of(read_scenario(YamlSource(
      "s.yaml",
      "model: {family: llama, num_layers: 12, hidden_size: 2048, num_attention_heads: 16, "
      "ffn_hidden_size: 5632, vocab_size: 64000}\ncluster: dgx-a100\nschedule: " +
          schedule + "\nparallel: {pipeline_model_parallel_size: 4, " + parallel +
          "}\nbatch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 1024}\n")));
}

bool names_a_layout(const MegatronFlags& flags) {
  return std::ranges::any_of(flags.flags, [](const std::string& flag) {
    return flag.starts_with("--pipeline-model-parallel-layout ");
  });
}

TEST(MegatronFlags, SayWhereLayersStandThatStandUnevenly) {
  EXPECT_FALSE(names_a_layout(flags_with_layers("1f1b", "num_layers_per_stage: [3, 3, 3, 3]")));
  const MegatronFlags listed = flags_with_layers("1f1b", "num_layers_per_stage: [4, 3, 3, 2]");
  EXPECT_NE(
      std::ranges::find(listed.flags, "--pipeline-model-parallel-layout \"Et*4|(ttt|)*2ttL\""),
      listed.flags.end());
  EXPECT_TRUE(names_a_layout(flags_with_layers("1f1b", "balance: auto")));
  EXPECT_TRUE(names_a_layout(
      flags_with_layers("1f1b", "pipeline_model_parallel_layout: \"Et*4|ttt|ttt|ttL\"")));
  const MegatronFlags fork = flags_with_layers("zb-1p", "num_layers_per_stage: [4, 3, 3, 2]");
  EXPECT_FALSE(names_a_layout(fork));
  EXPECT_TRUE(std::ranges::any_of(fork.differences, [](const std::string& note) {
    return note.find("Et*4|(ttt|)*2ttL, for which it has no flag") != std::string::npos;
  }));
}

// The layout has the number of chunks, and Megatron-LM takes one of the two.
TEST(MegatronFlags, DoNotSayTheChunksBesideALayout) {
  const MegatronFlags flags =
      flags_with_layers("{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}",
                        "num_layers_per_stage: [2, 2, 2, 2, 1, 1, 1, 1]");
  EXPECT_TRUE(names_a_layout(flags));
  for (const std::string& flag : flags.flags)
    EXPECT_FALSE(flag.starts_with("--num-virtual")) << flag;
}

}  // namespace
}  // namespace pipesim::megatron_flags_test
