// YAML of GPT-NeoX and nanotron as Megatron-LM's settings, and logs of other frameworks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/megatron/log.h"
#include "sim/interop/megatron/memory_log.h"
#include "sim/read/scenario.h"

namespace pipesim::renamed_settings_test {
namespace {

Scenario read(const std::string& text) {
  auto settings = read_renamed_settings("c.yml", text);
  EXPECT_TRUE(settings);
  const Draft draft = megatron_draft(*settings, "dgx-h100");
  EXPECT_TRUE(draft.missing.empty() && draft.stops.empty()) << summary_of(draft);
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

TEST(RenamedSettings, AreThoseOfGptNeox) {
  const Scenario scenario = read(
      "{\"pipe-parallel-size\": 4, \"model-parallel-size\": 2, \"num-layers\": 44,\n"
      "\"hidden-size\": 6144, \"num-attention-heads\": 64, \"seq-length\": 2048,\n"
      "\"norm\": \"layernorm\", \"pos-emb\": \"rotary\", \"no-weight-tying\": true,\n"
      "\"rotary-pct\": 0.25, \"use-qk-layernorm\": true,\n"
      "\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 32,\n"
      "\"checkpoint-activations\": true, \"zero_optimization\": {\"stage\": 1},\n"
      "\"fp16\": {\"enabled\": true}, \"vocab_size\": 50432, \"world_size\": 16}\n");
  EXPECT_EQ(scenario.parallel.pipeline, 4);
  EXPECT_EQ(scenario.parallel.tensor, 2);
  EXPECT_EQ(scenario.parallel.data, 2);
  EXPECT_EQ(scenario.batch.microbatches, 32);
  EXPECT_EQ(scenario.modelled->model.positions, Positions::kRotary);
  EXPECT_EQ(scenario.modelled->model.rotary_percent, 0.25);
  EXPECT_EQ(scenario.modelled->model.qk_norm, QkNorm::kPerHead);
  EXPECT_FALSE(scenario.modelled->model.tied_embeddings);
  EXPECT_TRUE(scenario.modelled->state.distributed_optimizer);
  EXPECT_EQ(scenario.schedules[0].recompute->granularity, RecomputeGranularity::kFull);
}

// Its gated MLPs have a third of the width that is stated, in multiples.
TEST(RenamedSettings, AreThoseOfAGatedGptNeox) {
  const auto of_attention = [](const std::string& attention) {
    return "{\"pipe_parallel_size\": 0, \"model_parallel_size\": 1, \"num_layers\": 32,\n"
           "\"hidden_size\": 4096, \"intermediate_size\": 32768, \"num_attention_heads\": 32,\n"
           "\"activation\": \"swiglu\", \"mlp_multiple_of\": 256, \"norm\": \"rmsnorm\",\n"
           "\"attention_config\": " +
           attention +
           ", \"seq_length\": 2048, \"pos_emb\": \"rotary\",\n"
           "\"train_micro_batch_size_per_gpu\": 4, \"output_layer_parallelism\": \"column\",\n"
           "\"zero_optimization\": {\"stage\": 1, \"overlap_comm\": true,\n"
           "\"reduce_scatter\": true, \"allgather_bucket_size\": 5e8, \"cpu_offload\": false},\n"
           "\"bf16\": {\"enabled\": true}, \"vocab_size\": 32000, \"world_size\": 16}\n";
  };
  const Scenario scenario = read(of_attention("[[[\"flash\"], 32]]"));
  EXPECT_EQ(scenario.modelled->model.ffn_hidden_size, 11008);
  EXPECT_TRUE(scenario.modelled->context.flash_attention);
  EXPECT_FALSE(scenario.modelled->context.dropout);
  EXPECT_EQ(scenario.batch.microbatches, 1);
  EXPECT_FALSE(read(of_attention("[[[\"global\"], 32]]")).modelled->context.flash_attention);
  auto mixed = read_renamed_settings("c.yml", of_attention("[[[\"flash\", \"mamba\"], 16]]"));
  EXPECT_EQ(megatron_draft(*mixed, "dgx-h100").stops.at(0).first, "attention_config");
}

TEST(RenamedSettings, AreThoseOfNanotron) {
  const Scenario scenario = read(
      "model: {dtype: bfloat16, model_config: {num_hidden_layers: 16, hidden_size: 2048,\n"
      "  intermediate_size: 8192, num_attention_heads: 32, num_key_value_heads: 8,\n"
      "  tie_word_embeddings: true, vocab_size: 128256, max_position_embeddings: 4096}}\n"
      "parallelism: {dp: 4, pp: 2, tp: 2, pp_engine: afab, tp_mode: REDUCE_SCATTER}\n"
      "tokens: {micro_batch_size: 2, sequence_length: 4096, batch_accumulation_per_replica: 8}\n"
      "optimizer: {zero_stage: 1}\n");
  EXPECT_EQ(scenario.schedules[0].name, "gpipe");
  EXPECT_EQ(scenario.parallel.data, 4);
  EXPECT_EQ(scenario.batch.microbatches, 8);
  EXPECT_TRUE(scenario.modelled->context.sequence_parallel);
  EXPECT_EQ(scenario.modelled->model.num_query_groups, 8);
  EXPECT_TRUE(scenario.modelled->model.gated_mlp);
}

TEST(RenamedSettings, AreNoneOfOtherFiles) {
  EXPECT_FALSE(read_renamed_settings("c.yml", "num_layers: 8\n"));
}

TEST(TrainingLog, SaysAStepOfEveryFramework) {
  EXPECT_NEAR(steps_of_log("iteration 1 | iter time (s): 2.5 | loss 3\n").median.value(), 2.5,
              1e-9);
  EXPECT_NEAR(steps_of_log("train_step_timing in s: 2.34").median.value(), 2.34, 1e-9);
  EXPECT_NEAR(steps_of_log("elapsed_time_per_iteration_ms: 2.35K | x").median.value(), 2.35, 1e-9);
  EXPECT_NEAR(steps_of_log("loss: 1  tps: 4,000  mfu", {.tokens_per_gpu = 8000}).median.value(), 2,
              1e-9);
  EXPECT_NEAR(
      steps_of_log("\x1b[33mmemory: 3GiB  \x1b[34mtps: 4,000\x1b[0m", {.tokens_per_gpu = 8000})
          .median.value(),
      2, 1e-9);
  EXPECT_NEAR(steps_of_log("CurrSamplesPerSec=12.5, x", {.samples = 50}).median.value(), 4, 1e-9);
  EXPECT_EQ(steps_of_log("loss: 1  tps: 4,000  mfu").lines, 0U) << "of a size that is not known";
  EXPECT_NEAR(steps_of_log("0/40, SamplesPerSec=12.5, x", {.samples = 50}).median.value(), 4, 1e-9);
  EXPECT_NEAR(steps_of_log("Step Time : 5.25s GPU utilization: 450.1").median.value(), 5.25, 1e-9);
  EXPECT_NEAR(steps_of_log("1/9 [9:07<8:01, 41.36s/it, loss=3.1]").median.value(), 41.36, 1e-9);
  EXPECT_NEAR(steps_of_log("1/9 [9:07<8:01,  2.50it/s, loss=3.1]").median.value(), 0.4, 1e-9);
  EXPECT_EQ(steps_of_log("Loading shards: 3/3 [00:10<00:00, 3.5s/it]").lines, 0U);
  EXPECT_NEAR(
      steps_of_log("throughput/device/TPS=4,000\n", {.tokens_per_gpu = 8000}).median.value(), 2,
      1e-9);
  EXPECT_NEAR(steps_of_log("{'train_speed(iter/s)': 0.125, 'epoch': 1}").median.value(), 8, 1e-9);
}

TEST(TrainingLog, CountsLinesOfTheScenariosBatchAlone) {
  const auto line = [](const char* batch, const char* ms) {
    return fmt::format(
        " iteration 7/ 9 | elapsed time per iteration (ms): {} | global batch size: "
        "  {} | lm loss: 2\n",
        ms, batch);
  };
  const std::string rising = line("16", "400.0") + line("32", "800.0") + line("64", "1600.0");
  const LoggedSteps full = steps_of_log(rising, {.samples = 64});
  EXPECT_EQ(full.lines, 1U);
  EXPECT_NEAR(full.median.value(), 1.6, 1e-9);
  const LoggedSteps none = steps_of_log(rising, {.samples = 128});
  EXPECT_EQ(none.lines, 0U);
  EXPECT_EQ(none.other_batch, 64);
}

TEST(TrainingLog, SaysMemoryInItsOwnTerms) {
  const LoggedMemory titan = memory_of_log("memory: 61.20GiB(77.41%)  tps: 5,636\n");
  EXPECT_TRUE(titan.reserved);
  EXPECT_EQ(titan.allocated, 61.2 * kGiB);
  EXPECT_EQ(memory_of_log("MemAllocated=2GB, MaxMemAllocated=12.5GB").allocated, 12.5 * kGiB);
  for (const char* nanotron :
       {"cuda_max_memory_reserved: 45.2G | x", "cuda_max_memory_reserved: 45.2B"}) {
    EXPECT_EQ(memory_of_log(nanotron).allocated, Bytes(45.2e9)) << nanotron;
  }
  EXPECT_EQ(memory_of_log("{'memory(GiB)': 60.5, 'epoch': 1}").allocated, 60.5 * kGiB);
  const LoggedMemory ranks = memory_of_log(
      "[Rank 0] memory (MB) | max allocated: 2048.0 |\n[Rank 12] memory | max allocated: 1024\n");
  EXPECT_FALSE(ranks.reserved);
  ASSERT_EQ(ranks.of_rank.size(), 2U);
  EXPECT_EQ(ranks.of_rank.at(12), 1.0 * kGiB);
}

TEST(TrainingLog, ARankNobodyHasIsNone) {
  const LoggedMemory torn =
      memory_of_log("[Rank 55555555555555555555] | max allocated: 2048.0 |\n");
  EXPECT_EQ(torn.allocated, 2.0 * kGiB);
  EXPECT_TRUE(torn.of_rank.empty());
}

}  // namespace
}  // namespace pipesim::renamed_settings_test
