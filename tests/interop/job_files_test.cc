// Job files of torchtitan and configurations of DeepSpeed.
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::job_files_test {
namespace {

Scenario read(const Draft& draft) {
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

TEST(TorchtitanImport, ReadsAJobFile) {
  const Settings settings = read_toml_settings("torchtitan", "job.toml", R"([job]
description = "x"
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 8
seq_len = 4096
surprise = 1
[parallelism]
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
)");
  const Draft draft = torchtitan_draft(settings, "dgx-h100");
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  const Scenario scenario = read(draft);
  EXPECT_EQ(scenario.modelled->model.num_layers, 32);
  EXPECT_EQ(scenario.batch.microbatches, 8);
  EXPECT_EQ(scenario.parallel.data, 4);
  EXPECT_EQ(scenario.schedules[0].name, "interleaved-1f1b");
  EXPECT_EQ(scenario.transfers, Transfers::kBlocking);
  // 34 layers on 8 stages, where the embedding and the output are one each.
  EXPECT_EQ(scenario.modelled->split.listed, (std::vector<int>{4, 5, 4, 4, 4, 4, 4, 3}));
  EXPECT_EQ(draft.unknown, std::vector<std::string>{"training.surprise 1 (line 10)"});
  EXPECT_EQ(draft.not_modelled,
            std::vector<std::string>{"parallelism.enable_async_tensor_parallel true (line 16)"});
}

// Llama 3.1 405B on 512 H100 (arXiv 2410.06511): 8 data, 8 tensor and 8 pipeline ranks, local
// batches of 32.
TEST(TorchtitanImport, DividesABatchAsTheVersionOfTheFileDid) {
  const auto microbatches = [](const std::string& section, const std::string& more) {
    const Settings settings =
        read_toml_settings("torchtitan", "job.toml",
                           "[model]\nname = \"llama3\"\nflavor = \"405B\"\n[training]\nbatch_size "
                           "= 32\nseq_len = 8192\n"
                           "data_parallel_shard_degree = 8\ntensor_parallel_degree = 8\n[" +
                               section + "]\npipeline_parallel_degree = 8\n" + more);
    return read(torchtitan_draft(settings, "dgx-h100")).batch.microbatches;
  };
  EXPECT_EQ(microbatches("experimental", ""), 8);
  EXPECT_EQ(microbatches("experimental", "pipeline_parallel_microbatches = 16\n"), 16);
  EXPECT_EQ(microbatches("parallelism", ""), 32);
  EXPECT_EQ(microbatches("parallelism", "pipeline_parallel_microbatch_size = 2\n"), 16);
}

// The scenario that repeats its published rows: 100 and 128 tokens per second and GPU were
// measured.
TEST(TorchtitanImport, OfThePublished405B) {
  const auto rate = [](const std::vector<Override>& overrides) {
    const Scenario scenario = read_scenario(YamlSource::from_file(
        PIPESIM_SOURCE_DIR "/scenarios/paper/torchtitan_405b.yaml", {}, overrides));
    const double tokens = 1.0 * scenario.batch.microbatches * *scenario.batch.micro_batch_size *
                          *scenario.batch.seq_length / 64;
    return tokens / simulate(prepare_first(scenario)).report.iteration.value();
  };
  EXPECT_NEAR(rate({}), 105, 0.5);
  EXPECT_NEAR(rate({{"schedule", "interleaved-1f1b", {}, {}},
                    {"parallel.virtual_pipeline_model_parallel_size", "2", {}, {}},
                    {"parallel.num_layers_per_stage",
                     "[7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]",
                     {},
                     {}}}),
              136, 0.5);
}

TEST(TorchtitanImport, GivesLayersToStagesAsItDoes) {
  const auto split = [](const std::string& parallelism) {
    const Settings settings =
        read_toml_settings("torchtitan", "job.toml",
                           "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
                           "data_parallel_shard_degree = 2\npipeline_parallel_degree = 4\n" +
                               parallelism);
    const Draft draft = torchtitan_draft(settings, "dgx-h100");
    return draft.missing.empty() ? read(draft).modelled->split.listed : std::vector<int>{};
  };
  EXPECT_EQ(split(""), (std::vector<int>{8, 9, 8, 7}));
  EXPECT_EQ(split("pipeline_parallel_first_stage_less_layers = 0\n"
                  "pipeline_parallel_last_stage_less_layers = 0\n"),
            (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(split("pipeline_parallel_last_stage_less_layers = 3\n"),
            (std::vector<int>{8, 9, 9, 6}));
  const std::string looped = "pipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  EXPECT_EQ(split(looped + "pipeline_parallel_layers_per_stage = 3\n"),
            (std::vector<int>{2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 1}));
  EXPECT_TRUE(split(looped + "pipeline_parallel_layers_per_stage = 5\n").empty());
  EXPECT_TRUE(split("pipeline_parallel_layers_per_stage = 3\n").empty());
}

Draft torchtitan(const std::string& parallelism) {
  const Settings settings = read_toml_settings("torchtitan", "job.toml",
                                               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                                               "[training]\nlocal_batch_size = 8\nseq_len = 4096\n"
                                               "[parallelism]\n" +
                                                   parallelism);
  return torchtitan_draft(settings, "dgx-h100");
}

TEST(TorchtitanImport, ReadsFsdpWithAndWithoutAPipeline) {
  const ParameterState alone = read(torchtitan("data_parallel_shard_degree = 8\n")).modelled->state;
  EXPECT_EQ(strategy_of(alone), ShardingStrategy::kOptimGradsParams);
  EXPECT_TRUE(alone.reshard_after_forward);
  EXPECT_TRUE(alone.reduce_every_microbatch);
  EXPECT_EQ(alone.shard_degree, 0);
  const Draft never =
      torchtitan("data_parallel_shard_degree = 8\nfsdp_reshard_after_forward = \"never\"\n");
  EXPECT_FALSE(read(never).modelled->state.reshard_after_forward);
  EXPECT_EQ(never.recompute, "{granularity: full, every: 2}") << "its usual option";
  const std::string pipeline = "data_parallel_shard_degree = 8\npipeline_parallel_degree = 2\n";
  const ParameterState staged = read(torchtitan(pipeline)).modelled->state;
  EXPECT_FALSE(staged.reshard_after_forward);
  EXPECT_FALSE(staged.reduce_every_microbatch);
  const ParameterState always =
      read(torchtitan(pipeline + "fsdp_reshard_after_forward = \"always\"\n")).modelled->state;
  EXPECT_TRUE(always.reshard_after_forward);
  EXPECT_FALSE(always.reduce_every_microbatch);
}

TEST(TorchtitanImport, ReadsHybridShardingAndReplication) {
  const Scenario hybrid =
      read(torchtitan("data_parallel_shard_degree = 8\ndata_parallel_replicate_degree = 4\n"));
  EXPECT_EQ(hybrid.parallel.data, 32);
  EXPECT_EQ(hybrid.modelled->state.shard_degree, 8);
  const Scenario replicated =
      read(torchtitan("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 4\n"));
  EXPECT_EQ(replicated.parallel.data, 4);
  EXPECT_FALSE(replicated.modelled->state.distributed_optimizer);
}

TEST(TorchtitanImport, ReadsHowKeysAndValuesRotate) {
  const std::string four = "data_parallel_shard_degree = 2\ncontext_parallel_degree = 4\n";
  const auto exchange = [&](const std::string& method) {
    return read(torchtitan(four + method)).modelled->context.exchange;
  };
  EXPECT_EQ(exchange(""), ContextExchange::kAllGather);
  EXPECT_EQ(exchange("context_parallel_rotate_method = \"allgather\"\n"),
            ContextExchange::kAllGather);
  EXPECT_EQ(exchange("context_parallel_rotate_method = \"alltoall\"\n"), ContextExchange::kRing);
  EXPECT_EQ(torchtitan(four + "context_parallel_rotate_method = \"p2p\"\n").unknown,
            std::vector<std::string>{"context_parallel_rotate_method p2p"});
}

TEST(TorchtitanImport, SaysWhereTomlIsNone) {
  try {
    (void)read_toml_settings("torchtitan", "job.toml", "[job]\na = \n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find("job.toml:2:"), 0U) << error.what();
  }
}

TEST(DeepspeedImport, ReadsWhatTheFileSaysAndNamesTheRest) {
  const std::string text =
      "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 2, "
      "\"gradient_accumulation_steps\": 16,\n \"bf16\": {\"enabled\": true}, "
      "\"zero_optimization\": {\"stage\": 1, \"overlap_comm\": true, \"reduce_bucket_size\": "
      "5e8},\n"
      " \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.1}}, \"odd\": 3,\n"
      " \"pipeline\": {\"stages\": \"auto\", \"activation_checkpoint_interval\": 1}}";
  Settings settings = read_json_settings("deepspeed", "ds.json", text);
  const Draft bare = deepspeed_draft(settings, "");
  EXPECT_EQ(bare.missing.size(), 4U) << scenario_of(bare);
  for (const auto& [name, value] : {std::pair("model", "llama3-8b"), std::pair("num_stages", "4"),
                                    std::pair("seq_length", "4096")}) {
    settings.add({name, {value}, {}});
  }
  const Draft draft = deepspeed_draft(settings, "dgx-h100");
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  const Scenario scenario = read(draft);
  EXPECT_EQ(scenario.parallel.data, 8);
  EXPECT_EQ(scenario.batch.microbatches, 16);
  EXPECT_TRUE(scenario.modelled->state.distributed_optimizer);
  EXPECT_TRUE(scenario.roofline->overlap.gradient_reduce);
  EXPECT_EQ(draft.recompute, "full");
  EXPECT_EQ(draft.unknown, std::vector<std::string>{"odd 3 (line 3)"});
}

TEST(DeepspeedImport, AsksForTheWordsOfATemplate) {
  const std::string text =
      "{\"train_micro_batch_size_per_gpu\": MB_SIZE, \"gradient_accumulation_steps\": 4,\n"
      "\"bf16\": {\"enabled\": ${BF16}}, \"zero_optimization\": {\"stage\": $ZERO},\n"
      "\"optimizer\": {\"params\": {\"lr\": LR}}, \"note\": \"MB_SIZE\",\n"
      "\"model\": \"llama3-8b\", \"seq_length\": 4096, \"num_stages\": 2, \"world_size\": 16}";
  const auto draft_of = [&](const Given& given) {
    return deepspeed_draft(read_json_settings("deepspeed", "ds.json", text, given), "dgx-h100");
  };
  EXPECT_EQ(draft_of({}).missing,
            (std::vector<std::string>{"MB_SIZE=...: train_micro_batch_size_per_gpu (line 1)",
                                      "BF16=...: bf16.enabled (line 2)",
                                      "ZERO=...: zero_optimization.stage (line 2)"}));
  const Draft draft = draft_of({{"MB_SIZE", "2"}, {"BF16", "true"}, {"ZERO", "1"}});
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  EXPECT_EQ(read(draft).batch.micro_batch_size, 2);
  EXPECT_TRUE(read(draft).modelled->state.distributed_optimizer);
}

// train_batch_size = micro batch x accumulation x data-parallel ranks.
TEST(DeepspeedImport, AsksForNothingThatFollows) {
  const auto missing = [](const std::string& more) {
    const std::string text =
        "{\"train_batch_size\": 32, \"fp16\": {\"enabled\": true}, \"model\": \"llama3-8b\",\n"
        "\"seq_length\": 4096, \"num_stages\": 1" +
        more + "}";
    return deepspeed_draft(read_json_settings("deepspeed", "ds.json", text), "dgx-h100").missing;
  };
  EXPECT_EQ(missing(", \"train_micro_batch_size_per_gpu\": 4"),
            std::vector<std::string>{"the number of GPUs: world_size=N"});
  EXPECT_EQ(missing(", \"world_size\": 8"),
            std::vector<std::string>{"train_micro_batch_size_per_gpu=N"});
  const auto odd = missing(", \"train_micro_batch_size_per_gpu\": 4, \"world_size\": 16");
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_NE(odd[0].find("whose 16 data-parallel ranks divide the train_batch_size of 32"),
            std::string::npos);
}

TEST(DeepspeedImport, ReadsZerosStages) {
  const auto draft_of = [](const std::string& zero, const std::string& stages) {
    Settings settings = read_json_settings(
        "deepspeed", "ds.json",
        "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2,\n"
        "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {" +
            zero + "}, \"world_size\": 16, \"seq_length\": 4096, \"model\": \"llama3-8b\"" +
            stages + "}");
    return deepspeed_draft(settings, "dgx-h100");
  };
  const Draft two = draft_of("\"stage\": 2, \"overlap_comm\": true", "");
  EXPECT_TRUE(two.missing.empty()) << scenario_of(two);
  EXPECT_EQ(strategy_of(read(two).modelled->state), ShardingStrategy::kOptimGrads);
  const Draft three = draft_of("\"stage\": 3, \"mics_shard_size\": 8", "");
  EXPECT_EQ(strategy_of(read(three).modelled->state), ShardingStrategy::kOptimGradsParams);
  EXPECT_EQ(read(three).modelled->state.shard_degree, 8);
  EXPECT_TRUE(three.not_modelled.empty()) << scenario_of(three);
  const Draft staged = draft_of("\"stage\": 2", ", \"num_stages\": 2");
  ASSERT_EQ(staged.not_modelled.size(), 1U);
  EXPECT_NE(staged.not_modelled[0].find("stages 0 and 1 alone"), std::string::npos);
  EXPECT_EQ(strategy_of(read(staged).modelled->state), ShardingStrategy::kOptim);
  const Draft host = draft_of(
      "\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.4, \"pin_memory\": "
      "true}",
      "");
  EXPECT_EQ(read(host).modelled->state.optimizer.host_fraction, 0.4);
  EXPECT_TRUE(host.not_modelled.empty() && host.unknown.empty()) << scenario_of(host);
  const Draft disk = draft_of("\"stage\": 2, \"offload_optimizer\": {\"device\": \"nvme\"}", "");
  EXPECT_EQ(disk.not_modelled,
            std::vector<std::string>{"zero_optimization.offload_optimizer.device nvme"});
  const Draft bits = draft_of("\"stage\": 1", ", \"optimizer\": {\"type\": \"ZeroOneAdam\"}");
  ASSERT_EQ(bits.stops.size(), 1U);
  EXPECT_EQ(bits.stops[0].first, "optimizer.type");
}

// 1-bit Adam's first steps exchange whole gradients; of those behind nothing is known.
TEST(DeepspeedImport, AsksWhichPartOfARunIsMeant) {
  const auto draft_of = [](const std::string& more, const Given& given) {
    Settings settings = read_json_settings(
        "deepspeed", "ds.json",
        "{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4,\n"
        "\"fp16\": {\"enabled\": true}, \"model\": \"llama3-8b\", \"seq_length\": 1024, "
        "\"num_stages\": 1, \"world_size\": 8, " +
            more + "}",
        given);
    for (const auto& [name, value] : given) settings.give(name, value, {});
    return deepspeed_draft(settings, "dgx-h100");
  };
  const std::string one_bit =
      "\"optimizer\": {\"type\": \"OneBitAdam\", \"params\": {\"freeze_step\": 400}}";
  EXPECT_EQ(draft_of(one_bit, {}).missing,
            std::vector<std::string>{
                "optimizer_stage=...: optimizer.type (line 2: warmup or compressed)"});
  const Draft warm = draft_of(one_bit, {{"optimizer_stage", "warmup"}});
  EXPECT_TRUE(warm.missing.empty() && warm.stops.empty()) << scenario_of(warm);
  EXPECT_NE(scenario_of(warm).find("the first 400 steps of OneBitAdam"), std::string::npos);
  EXPECT_EQ(draft_of(one_bit, {{"optimizer_stage", "compressed"}}).stops.size(), 1U);
  EXPECT_THROW(draft_of(one_bit, {{"optimizer_stage", "late"}}), InputError);

  const std::string dropping =
      "\"data_efficiency\": {\"data_routing\": {\"random_ltd\": {\"enabled\": true, "
      "\"total_layer_num\": 12, \"random_ltd_schedule\": {\"min_value\": 128, \"max_value\": "
      "1024}}}}";
  EXPECT_EQ(draft_of(dropping, {}).missing.size(), 1U);
  const Draft after = draft_of(dropping, {{"random_ltd", "after"}});
  EXPECT_TRUE(after.missing.empty() && after.stops.empty()) << scenario_of(after);
  EXPECT_EQ(draft_of(dropping, {{"random_ltd", "during"}}).stops.size(), 1U);
  std::string wordy = dropping;
  wordy.replace(wordy.find("true"), 4, "LTD");
  const auto asked = draft_of(wordy, {}).missing;
  ASSERT_EQ(asked.size(), 2U);  // in one list
  EXPECT_EQ(asked[0],
            "random_ltd=...: data_efficiency.data_routing.random_ltd.enabled (line 2: after or "
            "during)");
}

TEST(DeepspeedImport, AsksWhetherSequencesStillGrow) {
  const auto draft_with = [](const std::string& part, const std::string& most) {
    Settings settings = read_json_settings(
        "deepspeed", "ds.json",
        "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 1, \"model\": "
        "\"llama3-8b\", \"num_stages\": 1, \"world_size\": 8, \"seq_length\": 4096, "
        "\"activation_checkpointing\": {\"partition_activations\": true}, "
        "\"curriculum_learning\": {\"enabled\": true, \"curriculum_type\": \"seqlen\", "
        "\"min_difficulty\": 64, \"schedule_type\": \"fixed_linear\", \"max_difficulty\": " +
            most + "}}");
    if (!part.empty()) settings.give("curriculum", part, {});
    return deepspeed_draft(settings, "dgx-h100");
  };
  EXPECT_EQ(draft_with("", "4096").missing,
            std::vector<std::string>{
                "curriculum=...: curriculum_learning.enabled (line 1: after or during)"});
  EXPECT_TRUE(draft_with("after", "4096").stops.empty());
  EXPECT_EQ(draft_with("after", "2048").stops.size(), 1U);
  EXPECT_EQ(draft_with("during", "4096").stops.size(), 1U);
}

TEST(DeepspeedImport, ReadsASectionThatIsSwitchedOffAsNothing) {
  Settings settings = read_json_settings(
      "deepspeed", "ds.json",
      "{\"sparse_attention\": {\"enabled\": false, \"num_local_blocks\": 4},\n"
      "\"compression_training\": {\"layer_reduction\": {\"enabled\": true, \"keep_number_layer\": "
      "6}}, \"model\": \"llama3-8b\"}");
  const Draft draft = deepspeed_draft(settings, "dgx-h100");
  EXPECT_TRUE(draft.stops.empty()) << scenario_of(draft);
  EXPECT_NE(scenario_of(draft).find("  base: llama3-8b\n  num_layers: 6\n"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::job_files_test
