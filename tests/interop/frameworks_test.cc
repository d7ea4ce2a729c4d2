#include <gtest/gtest.h>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/interop/configurations/bridge.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/number_list.h"
#include "sim/interop/megatron/flags.h"
#include "sim/interop/megatron/memory_log.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::frameworks_test {
namespace {

Draft megatron(const std::string& text, const std::string& cluster = "dgx-h100") {
  return megatron_draft(read_arguments("run.sh", text), cluster);
}

Scenario read(const Draft& draft) {
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

constexpr const char* kScript = R"(#!/bin/bash
GPUS=8
NODES=${SLURM_NNODES:-4}
MODEL_ARGS=(
    --num-layers 32      # decoder
    --hidden-size=4096
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --ffn-hidden-size 14336 --swiglu --normalization RMSNorm
    --position-embedding-type rope --untie-embeddings-and-output-weights --disable-bias-linear
    --seq-length 8192 --vocab-size 128256
    #--mtp-num-layers 1
)
OTHERS="--hidden-dropout 0.0 --attention-dropout 0 \
        --bf16"
OTHERS="$OTHERS --lr 3e-4 --save $1"
torchrun --nproc_per_node $GPUS --nnodes $NODES pretrain_gpt.py \
    ${MODEL_ARGS[@]} $OTHERS "--tensor-model-parallel-size" 2 --sequence-parallel \
    --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4 \
    --micro-batch-size 1 --global-batch-size 128 --use-distributed-optimizer \
    --overlap-grad-reduce --recompute-granularity selective --recompute-modules mlp core_attn \
    --empty-unused-memory-level 1 --num-layrs 3
)";

TEST(MegatronImport, ReadsALaunchScript) {
  const Draft draft = megatron(kScript);
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  const Scenario scenario = read(draft);
  EXPECT_EQ(scenario.parallel.pipeline, 4);
  EXPECT_EQ(scenario.parallel.tensor, 2);
  EXPECT_EQ(scenario.parallel.data, 4);
  EXPECT_EQ(scenario.batch.microbatches, 32);
  EXPECT_EQ(scenario.schedules.at(0).name, "interleaved-1f1b");
  EXPECT_EQ(scenario.schedules.at(0).chunks, 2);
  EXPECT_TRUE(scenario.roofline->overlap.gradient_reduce);
  const Transformer& model = scenario.modelled->model;
  EXPECT_EQ(model.num_layers, 32);
  EXPECT_EQ(model.num_query_groups, 8);
  EXPECT_EQ(model.vocab_size, 128256);
  EXPECT_EQ(model.mtp_layers, 0);
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_FALSE(model.linear_bias);
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_FALSE(scenario.modelled->context.dropout);
  EXPECT_TRUE(scenario.modelled->context.sequence_parallel);
  EXPECT_TRUE(scenario.modelled->state.distributed_optimizer);
  EXPECT_EQ(scenario.schedules.at(0).recompute->granularity,
            RecomputeModule::kMlp | RecomputeModule::kCoreAttention);
  EXPECT_EQ(draft.not_modelled, std::vector<std::string>{"empty_unused_memory_level 1 (line 21)"});
  ASSERT_EQ(draft.unknown.size(), 1U);
  EXPECT_EQ(draft.unknown[0].find("num_layrs 3 (line 21)"), 0U) << draft.unknown[0];
  EXPECT_EQ(draft.without_effect, 2);  // lr, save
}

TEST(MegatronImport, NamesWhatIsMissing) {
  const Draft draft = megatron("--num-layers 8 --hidden-size 512 --num-attention-heads 8", "");
  const std::vector<std::string> expected{"the tokenizer's vocabulary: vocab_size=N",
                                          "max_position_embeddings=N",
                                          "the number of GPUs: world_size=N",
                                          "micro_batch_size=N",
                                          "global_batch_size=N",
                                          "the cluster: --cluster NAME"};
  EXPECT_EQ(draft.missing, expected);
  EXPECT_NE(scenario_of(draft).find("# missing: micro_batch_size=N\n"), std::string::npos);
}

TEST(MegatronImport, ReadsExpertsAndLatentAttention) {
  const Draft draft = megatron(
      "# start 64 processes\n--num-layers 61 --hidden-size 7168 --num-attention-heads 128 "
      "--ffn-hidden-size 18432 --swiglu --normalization RMSNorm --position-embedding-type rope "
      "--vocab-size 129280 --make-vocab-size-divisible-by 1280 --num-experts 256 "
      "--moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 "
      "--moe-layer-freq '([0]*3+[1]*58)' --moe-router-enable-expert-bias "
      "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 "
      "--qk-pos-emb-head-dim 64 --v-head-dim 128 --mtp-num-layers 1 --disable-bias-linear "
      "--untie-embeddings-and-output-weights --pipeline-model-parallel-size 8 "
      "--expert-model-parallel-size 8 --pipeline-model-parallel-layout "
      "Et*3\\|\\(tt\\|\\)*29m\\|L --micro-batch-size 1 --global-batch-size 256 "
      "--seq-length 4096 --bf16 --hidden-dropout 0 --attention-dropout 0 "
      "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
      "--moe-dispatch-fwd-dtype mxfp8 --moe-combine-bwd-dtype foo");
  EXPECT_EQ(draft.unknown, std::vector<std::string>{"moe_combine_bwd_dtype foo"});
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  const Scenario scenario = read(draft);
  Transformer model = scenario.modelled->model;
  const Scenario known =
      read_scenario(YamlSource("k.yaml",
                               "schedule: 1f1b\nmodel: deepseek-v3\ncluster: dgx-h100\nparallel: "
                               "{pipeline_model_parallel_size: 1}\nbatch: {num_microbatches: 1, "
                               "micro_batch_size: 1, seq_length: 4096}\n"));
  model.name = known.modelled->model.name;
  model.source = known.modelled->model.source;
  model.max_position_embeddings = known.modelled->model.max_position_embeddings;
  EXPECT_EQ(model, known.modelled->model);
  EXPECT_EQ(scenario.schedules.at(0).chunks, 4);  // 32 stages on 8 devices
  EXPECT_TRUE(scenario.modelled->context.flex_dispatcher);
  EXPECT_TRUE(scenario.modelled->context.fp8_dispatch);
  EXPECT_FALSE(scenario.modelled->context.fp8_combine_gradient);
}

TEST(MegatronImport, ReadsYamlOfBridgeAndNemo) {
  const Draft bridge = megatron_draft(
      read_yaml_settings(
          "megatron", "b.yaml",
          "model: {num_layers: 16, hidden_size: 2048, num_attention_heads: 16,\n"
          "  gated_linear_unit: true, ffn_hidden_size: 8192, add_bias_linear: false,\n"
          "  share_embeddings_and_output_weights: false, normalization: RMSNorm,\n"
          "  position_embedding_type: rope, vocab_size: 32000, seq_length: 4096,\n"
          "  num_moe_experts: 8, moe_layer_freq: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,"
          " 1, 1, 1, 1],\n"
          "  pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: "
          "2, fp8: ~}\n"
          "train: {global_batch_size: 64, micro_batch_size: 2}\n"
          "ddp: {overlap_grad_reduce: true, grad_reduce_in_fp32: false}\n"
          "mixed_precision: bf16_mixed\n"
          "optimizer: {lr: 0.1}\n"
          "world_size: 8\n"),
      "dgx-h100");
  EXPECT_TRUE(bridge.missing.empty()) << scenario_of(bridge);
  const Scenario scenario = read(bridge);
  EXPECT_EQ(scenario.schedules.at(0).chunks, 2);
  EXPECT_EQ(scenario.parallel.data, 4);
  EXPECT_EQ(scenario.modelled->model.experts->num_experts, 8);
  EXPECT_FALSE(scenario.modelled->model.tied_embeddings);
  EXPECT_FALSE(scenario.modelled->state.gradients_in_fp32);
  const Draft nemo = megatron_draft(
      read_yaml_settings("megatron", "n.yaml",
                         "trainer: {devices: 8, num_nodes: 2, precision: bf16}\n"
                         "model: {micro_batch_size: 1, global_batch_size: 32, "
                         "encoder_seq_length: 2048, num_layers: 24, hidden_size: 1024,\n"
                         "  num_attention_heads: 16, max_position_embeddings: 2048, vocab_size: "
                         "50304, activations_checkpoint_granularity: full}\n"),
      "dgx-h100");
  EXPECT_TRUE(nemo.missing.empty()) << scenario_of(nemo);
  EXPECT_EQ(read(nemo).parallel.data, 16);
  EXPECT_EQ(nemo.recompute, "full");
}

TEST(MegatronImport, RefusesValuesThatAreNone) {
  try {
    (void)megatron("--num-layers twelve --hidden-size 4 --num-attention-heads 1");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("run.sh:1:1: num_layers: expected a number, not "
                        "'twelve'"),
              std::string::npos)
        << error.what();
  }
}

TEST(MegatronImport, ComesToAnEndWithScriptsThatDoNot) {
  std::string doubling = "A=(--x y)\n";
  for (int i = 0; i < 40; ++i) doubling += "A=(${A[@]} ${A[@]})\n";
  EXPECT_THROW(megatron(doubling), InputError);
  std::string longer = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) longer += "A=$A$A\n";
  EXPECT_THROW(megatron(longer), InputError);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "${A:-";
  EXPECT_THROW(megatron(deep), InputError);
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "A=(";
  EXPECT_THROW(megatron(nested), InputError);
}

TEST(MegatronImport, ReadsListExpressions) {
  EXPECT_EQ(frequencies_of("1", 3), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(frequencies_of("2", 4), (std::vector<int>{1, 0, 1, 0}));
  EXPECT_EQ(frequencies_of("([0]*1+[1,0]*2)", 5), (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_TRUE(frequencies_of("[1]*3", 4).empty());
  EXPECT_TRUE(frequencies_of("__import__('os')", 4).empty());
  EXPECT_TRUE(frequencies_of("([1]*9999999)*9999999", 4).empty());
  EXPECT_TRUE(frequencies_of(std::string(100000, '('), 4).empty());
}

// ---- round trip ----

constexpr const char* kModels[] = {
    "{family: gpt, num_layers: 48, hidden_size: 1024, num_attention_heads: 16, vocab_size: 51200, "
    "max_position_embeddings: 2048}",
    "{family: llama, num_layers: 48, hidden_size: 2048, num_attention_heads: 16, num_query_groups: "
    "4, ffn_hidden_size: 5632, vocab_size: 32002, qk_layernorm: true, moe: {num_experts: 8, "
    "router_topk: 2, ffn_hidden_size: 1408, shared_experts: 2, first_dense_layers: 1}}",
    "{family: llama, num_layers: 48, hidden_size: 2048, num_attention_heads: 16, ffn_hidden_size: "
    "5632, vocab_size: 64000, add_qkv_bias: true, mtp_num_layers: 1, mla: {q_lora_rank: 512, "
    "kv_lora_rank: 256, qk_head_dim: 64, qk_pos_emb_head_dim: 32, v_head_dim: 64}}"};

// The fork has untied embeddings, and neither latent attention nor context parallelism.
constexpr const char* kForkModels[] = {
    "{family: gpt, num_layers: 48, hidden_size: 1024, num_attention_heads: 16, vocab_size: 51200, "
    "max_position_embeddings: 4096, untie_embeddings_and_output_weights: true}",
    "{family: llama, num_layers: 48, hidden_size: 2048, num_attention_heads: 16, num_query_groups: "
    "4, ffn_hidden_size: 5632, vocab_size: 32002, qk_layernorm: true}"};

std::span<const char* const> models_of(const std::string& schedule) {
  const bool fork = find_schedule(schedule)->runs_on == Runtime::kZeroBubbleFork;
  return fork ? std::span<const char* const>(kForkModels) : kModels;
}

Scenario scenario_with(const std::string& schedule, const std::string& model, int context = 2,
                       int expert = 1) {
  return read_scenario(YamlSource(
      "s.yaml", "schedule: " + schedule + "\nmodel: " + model +
                    "\ncluster: dgx-h100\nparallel: {pipeline_model_parallel_size: 4, "
                    "tensor_model_parallel_size: 2, context_parallel_size: " +
                    std::to_string(context) +
                    ", expert_model_parallel_size: " + std::to_string(expert) +
                    ", data_parallel_size: 2, sequence_parallel: true}\n"
                    "batch: {num_microbatches: 12, micro_batch_size: 2, seq_length: 2048}\n"
                    "memory: {use_distributed_optimizer: true}\n" +
                    (schedule == "1f1b" ? "framework: {transfers: blocking}\n" : "")));
}

std::string exported(const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  return megatron_text(megatron_flags(made, *make_program(made)));
}

void expect_same(const Scenario& a, const Scenario& b, const std::string& what) {
  Transformer model = b.modelled->model;
  model.name = a.modelled->model.name;
  model.source = a.modelled->model.source;
  EXPECT_EQ(a.modelled->model, model) << what;
  EXPECT_EQ(a.parallel.pipeline, b.parallel.pipeline) << what;
  EXPECT_EQ(a.parallel.tensor, b.parallel.tensor) << what;
  EXPECT_EQ(a.parallel.context, b.parallel.context) << what;
  EXPECT_EQ(a.parallel.data, b.parallel.data) << what;
  EXPECT_EQ(a.modelled->context.sequence_parallel, b.modelled->context.sequence_parallel) << what;
  EXPECT_EQ(a.modelled->state.distributed_optimizer, b.modelled->state.distributed_optimizer);
  EXPECT_EQ(a.batch.microbatches, b.batch.microbatches) << what;
  EXPECT_EQ(a.batch.micro_batch_size, b.batch.micro_batch_size) << what;
  EXPECT_EQ(a.batch.seq_length, b.batch.seq_length) << what;
  // The fork calls its `zb` without a limit by twice the devices, as it does zb-2p.
  const std::string name = a.schedules[0].name == "zb" ? "zb-2p" : a.schedules[0].name;
  EXPECT_EQ(b.schedules[0].name, name) << what;
  EXPECT_EQ(chunks_of(a.schedules[0]), chunks_of(b.schedules[0])) << what;
  EXPECT_EQ(splits_of(a.schedules[0]), splits_of(b.schedules[0])) << what;
}

TEST(MegatronImport, TakesBackWhatExportWroteOfEverySchedule) {
  for (const std::string& schedule : megatron_schedules()) {
    for (const char* model : models_of(schedule)) {
      const int context = schedule == "1f1b" || schedule == "interleaved-1f1b" ? 2 : 1;
      const Scenario scenario = scenario_with(schedule, model, context);
      const std::string text = exported(scenario);
      const Draft draft = megatron(text);
      ASSERT_TRUE(draft.missing.empty()) << scenario_of(draft);
      EXPECT_TRUE(draft.unknown.empty()) << scenario_of(draft);
      EXPECT_TRUE(draft.not_modelled.empty()) << scenario_of(draft);
      const Scenario back = read(draft);
      expect_same(scenario, back, schedule + "\n" + text);
      EXPECT_EQ(exported(back), text) << schedule;
    }
  }
}

TEST(MegatronImport, TakesBackOptionsOfSchedules) {
  const char* interleaved =
      "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 3, "
      "microbatch_group_size_per_vp_stage: 6, overlap_moe_expert_parallel_comm: true, "
      "delay_wgrad_compute: true, ep_overlap_early_attn_memory_release: true}";
  const std::string text = exported(scenario_with(interleaved, kModels[1], 2, 2));
  EXPECT_EQ(exported(read(megatron(text))), text);
  for (const char* schedule :
       {"{name: seq-1f1b, splits: 4}", "{name: zb, memory_limit: 1.5}",
        "{name: gis, group_size: 3}",
        "{name: po-h, virtual_pipeline_model_parallel_size: 4, offload_chunks: 3}"}) {
    const std::string of_fork = exported(scenario_with(schedule, kForkModels[0], 1));
    EXPECT_EQ(exported(read(megatron(of_fork))), of_fork) << schedule;
  }
}

// Megatron-LM's own assertions: tests/interop/data/megatron_lm.yaml.
TEST(MegatronFlags, OverlapExpertsOnlyWhereTokensAreExchanged) {
  const std::string overlap =
      "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 3, "
      "overlap_moe_expert_parallel_comm: true";
  EXPECT_THROW((void)exported(scenario_with(overlap + "}", kModels[0])), InfeasibleError);
  EXPECT_THROW((void)exported(scenario_with(overlap + "}", kModels[1])), InfeasibleError);
  EXPECT_THROW((void)exported(scenario_with(overlap + ", recompute: full}", kModels[1], 2, 2)),
               InfeasibleError);
}

TEST(MegatronFlags, KeepThePrecisionWhereNothingValidatesAfterwards) {
  Scenario scenario = scenario_with("1f1b", kModels[0]);
  scenario.sync = OptimizerSync::kPostValidation;
  const std::string text = exported(scenario);
  EXPECT_NE(text.find("--bf16"), std::string::npos) << text;
  EXPECT_NE(text.find("the optimizer's step is validated afterwards"), std::string::npos) << text;
}

TEST(MegatronImport, TakesBackPrecisionAndFusedKernels) {
  Scenario scenario = scenario_with("1f1b", kModels[0]);
  Modelled& modelled = *scenario.modelled;
  modelled.context.precision = Precision::kFp8;
  modelled.context.fp8_parameters = modelled.block_scaled = true;
  modelled.context.fused_loss = true;
  modelled.context.fused_gate = modelled.context.flash_attention = false;
  const std::string text = exported(scenario);
  const Draft draft = megatron(text);
  EXPECT_TRUE(draft.not_modelled.empty()) << scenario_of(draft);
  const Scenario back = read(draft);
  EXPECT_EQ(exported(back), text);
  EXPECT_TRUE(back.modelled->block_scaled && back.modelled->context.fp8_parameters) << text;
  EXPECT_TRUE(back.modelled->context.fused_loss) << text;
  EXPECT_FALSE(back.modelled->context.fused_gate) << text;
  EXPECT_FALSE(back.modelled->context.flash_attention) << text;
}

TEST(MegatronImport, TakesBackHowContextRanksExchange) {
  for (const char* kind : {"all_gather", "p2p", "a2a"}) {
    Scenario scenario = scenario_with("1f1b", kModels[0]);
    const auto at = std::ranges::find(kContextExchanges, kind) - kContextExchanges.begin();
    scenario.modelled->context.exchange = static_cast<ContextExchange>(at);
    const std::string text = exported(scenario);
    EXPECT_NE(text.find(std::string("--cp-comm-type ") + kind + "\n"), std::string::npos) << text;
    EXPECT_EQ(exported(read(megatron(text))), text);
  }
  Scenario both = scenario_with("1f1b", kModels[0], 4);
  both.modelled->context.exchange = ContextExchange::kHeadsAndRing;
  both.modelled->context.hierarchy = {2, 2};
  const std::string text = exported(both);
  EXPECT_NE(text.find("--hierarchical-context-parallel-sizes 2 2\n"), std::string::npos) << text;
  EXPECT_EQ(exported(read(megatron(text))), text);
  const Case made = prepare_first(both);
  EXPECT_NE(bridge_text(megatron_flags(made, *make_program(made)))
                .find("  cp_comm_type: a2a+p2p\n  hierarchical_context_parallel_sizes: [2, 2]\n"),
            std::string::npos);
}

TEST(MegatronImport, ContextRanksPassOnUnlessItSaysOtherwise) {
  const std::string flags = exported(scenario_with("1f1b", kModels[0]));
  const std::string named = "--cp-comm-type all_gather\n";
  const auto with = [&](const std::string& other) {
    std::string text = flags;
    return megatron(text.replace(text.find(named), named.size(), other));
  };
  EXPECT_EQ(read(with("")).modelled->context.exchange, ContextExchange::kRing);
  // One for each layer.
  std::string each = "--cp-comm-type";
  for (int layer = 0; layer < 48; ++layer) each += " a2a";
  EXPECT_EQ(read(with(each + "\n")).modelled->context.exchange, ContextExchange::kHeads);
  const Draft other = with("--cp-comm-type p2p ring\n");
  EXPECT_EQ(other.unknown, std::vector<std::string>{"cp_comm_type ring"});
}

constexpr const char* kModelAlone =
    "--num-layers 16 --hidden-size 2048 --num-attention-heads 16 --vocab-size 32000 "
    "--max-position-embeddings 4096 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 "
    "--bf16 --hidden-dropout 0 --attention-dropout 0 ";

ParameterState state_of(const std::string& flags) {
  const Draft draft = megatron(kModelAlone + flags);
  EXPECT_TRUE(draft.missing.empty()) << scenario_of(draft);
  EXPECT_TRUE(draft.unknown.empty()) << scenario_of(draft);
  EXPECT_TRUE(draft.not_modelled.empty()) << scenario_of(draft);
  return read(draft).modelled->state;
}

TEST(MegatronImport, ReadsWhatDataRanksDivide) {
  const auto strategy = [](const std::string& flags) {
    return to_text(strategy_of(state_of("--world-size 16 " + flags)));
  };
  EXPECT_EQ(strategy(""), "no_shard");
  EXPECT_EQ(strategy("--use-distributed-optimizer"), "optim");
  // Without Megatron-FSDP its strategy says nothing.
  EXPECT_EQ(strategy("--data-parallel-sharding-strategy optim_grads"), "no_shard");
  const std::string fsdp =
      "--use-megatron-fsdp --use-distributed-optimizer --no-gradient-accumulation-fusion ";
  EXPECT_EQ(strategy(fsdp), "optim_grads_params");
  EXPECT_EQ(strategy(fsdp + "--data-parallel-sharding-strategy optim_grads"), "optim_grads");
  EXPECT_EQ(
      state_of("--world-size 16 --num-distributed-optimizer-instances 2 " + fsdp).shard_degree, 8);
  const ParameterState torch =
      state_of("--world-size 16 --use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward");
  EXPECT_TRUE(torch.sharded_weights);
  EXPECT_FALSE(torch.reshard_after_forward);
}

TEST(MegatronImport, ReadsPrecisionsOfTheAwareOptimizerAlone) {
  const std::string dtypes =
      "--world-size 16 --bf16 --use-distributed-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype "
      "fp8 ";
  EXPECT_EQ(state_of(dtypes).optimizer.bytes(), 12);
  const OptimizerState aware = state_of(dtypes + "--use-precision-aware-optimizer").optimizer;
  EXPECT_EQ(aware.bytes(), 2 + 2 + 1);  // of the fp32 copy what bf16 weights lack
  EXPECT_TRUE(aware.remainders);
  const OptimizerState sixteen =
      state_of(dtypes +
               "--use-precision-aware-optimizer --main-params-dtype fp16 "
               "--main-grads-dtype bf16 --grad-reduce-in-bf16")
          .optimizer;
  EXPECT_FALSE(sixteen.remainders);
  EXPECT_EQ(sixteen.main_params, 2);
  EXPECT_TRUE(sixteen.reads_16_bit_gradients);
  const OptimizerState host =
      state_of(dtypes + "--use-precision-aware-optimizer --optimizer-cpu-offload").optimizer;
  EXPECT_EQ(host.host_fraction, 1);
  EXPECT_EQ(host.bytes(), 4 + 2 + 1);
  const Draft other = megatron("--use-precision-aware-optimizer --exp-avg-dtype foo");
  EXPECT_EQ(other.unknown, std::vector<std::string>{"exp_avg_dtype foo"});
}

TEST(MegatronImport, ReadsModulesThatOffload) {
  const std::string modules =
      std::string(kModelAlone) + "--world-size 16 --offload-modules core_attn moe_act ";
  EXPECT_FALSE(read(megatron(modules)).modelled->context.offloaded.any());
  const Draft draft = megatron(modules + "fused_group_mlp --fine-grained-activation-offloading");
  EXPECT_EQ(read(draft).modelled->context.offloaded,
            OffloadModule::kCoreAttention | OffloadModule::kMoeActivation);
  ASSERT_EQ(draft.not_modelled.size(), 1U) << scenario_of(draft);
  EXPECT_EQ(draft.not_modelled.front(), "offload_modules fused_group_mlp");
  // MindSpeed's, by its own names.
  const std::string swaps = std::string(kModelAlone) + "--world-size 16 --swap-attention ";
  EXPECT_EQ(read(megatron(swaps)).modelled->context.offloaded,
            OffloadModule::kAttentionNorm | OffloadModule::kQkvLinear |
                OffloadModule::kCoreAttention | OffloadModule::kAttentionProjection |
                OffloadModule::kMlpNorm);
  EXPECT_EQ(read(megatron(swaps + "--swap-modules input_norm")).modelled->context.offloaded,
            OffloadModules(OffloadModule::kAttentionNorm));
  EXPECT_EQ(megatron(swaps + "--swap-modules output_layer").stops.at(0).first, "swap_modules");
}

// A script without its first comment, which names the model.
std::string below_its_name(const std::string& script) {
  return script.substr(script.find("set -e"));
}

TEST(MegatronImport, TakesBackWhatDataRanksDivide) {
  for (const char* memory :
       {"data_parallel_sharding_strategy: optim_grads",
        "data_parallel_sharding_strategy: optim_grads_params, data_parallel_shard_degree: 8",
        "use_distributed_optimizer: true, exp_avg_dtype: fp8, main_params_dtype: fp16",
        "use_distributed_optimizer: true, store_param_remainders: true, main_grads_dtype: bf16",
        "use_distributed_optimizer: true, optimizer_offload_fraction: 0.25, "
        "overlap_cpu_optimizer_d2h_h2d: true, offload_modules: [qkv_linear, core_attn]"}) {
    const Scenario scenario = read_scenario(
        YamlSource("s.yaml",
                   "schedule: 1f1b\nmodel: llama3-8b\ncluster: dgx-h100\n"
                   "parallel: {pipeline_model_parallel_size: 1, data_parallel_size: 16}\n"
                   "batch: {num_microbatches: 2, micro_batch_size: 1, seq_length: 4096}\n"
                   "memory: {" +
                       std::string(memory) + "}\n"));
    const std::string text = exported(scenario);
    const Draft draft = megatron(text);
    EXPECT_TRUE(draft.not_modelled.empty()) << scenario_of(draft);
    const ParameterState state = read(draft).modelled->state;
    EXPECT_EQ(strategy_of(state), strategy_of(scenario.modelled->state));
    EXPECT_EQ(state.shard_degree, scenario.modelled->state.shard_degree);
    EXPECT_EQ(state.optimizer.device_bytes(), scenario.modelled->state.optimizer.device_bytes());
    EXPECT_EQ(below_its_name(exported(read(draft))), below_its_name(text));
  }
}

TEST(MegatronLog, SaysTheLargestMemoryOfARank) {
  const LoggedMemory memory = memory_of_log(
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 100.5 | max allocated: 2048.0 | "
      "reserved: 3000.0 | max reserved: 3100.0\n[Rank 8] memory (MB) | max allocated: 1024\n");
  EXPECT_EQ(memory.lines, 2U);
  EXPECT_EQ(memory.allocated, Bytes(2048.0 * 1048576));
  EXPECT_EQ(memory_of_log("nothing").lines, 0U);
}

}  // namespace
}  // namespace pipesim::frameworks_test
