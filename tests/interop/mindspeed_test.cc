// Settings of MindSpeed and MindSpeed-LLM, which stand beside Megatron-LM's.
#include <gtest/gtest.h>

#include "models/layer_parameters.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::mindspeed_test {
namespace {

const std::string kRun =
    "run train.py --world-size 8 --vocab-size 32000 --make-vocab-size-divisible-by 1 --seq-length "
    "2048 --micro-batch-size 1 --global-batch-size 16 --hidden-dropout 0 --attention-dropout 0 "
    "--position-embedding-type rope --normalization RMSNorm --disable-bias-linear --swiglu "
    "--ffn-hidden-size 512 --bf16 --num-layers 8 --hidden-size 1024 --num-attention-heads 8 ";
const std::string kSpec = "--spec mindspeed_llm.tasks.models.spec.";

Draft drafted(const std::string& flags) {
  return megatron_draft(read_arguments("run.sh", kRun + flags), "dgx-h100");
}

Scenario read(const std::string& flags) {
  const Draft draft = drafted(flags);
  EXPECT_TRUE(draft.missing.empty() && draft.stops.empty()) << summary_of(draft);
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

Transformer model_of(const std::string& flags) { return read(flags).modelled->model; }

std::string stop_of(const std::string& flags) {
  const Draft draft = drafted(flags);
  return draft.stops.empty() ? "" : draft.stops[0].first;
}

TEST(MindSpeed, KeepsOptimizerStatesOnTheHost) {
  const OptimizerState state =
      read("--use-distributed-optimizer --swap-optimizer --swap-optimizer-times 4")
          .modelled->state.optimizer;
  EXPECT_TRUE(state.swapped);
  EXPECT_EQ(state.device_bytes(), 0);
  const ParameterState halves = read("--o2-optimizer --o2-gradient").modelled->state;
  EXPECT_EQ(halves.optimizer.bytes(), 8);
  EXPECT_EQ(read("--use-bnb-optimizer").modelled->state.optimizer.bytes(), 6);
  EXPECT_EQ(stop_of("--optimizer-selection fused_torch_adamw"), "");
  EXPECT_EQ(stop_of("--optimizer-selection fused_ema_adamw"), "optimizer_selection");
  EXPECT_FALSE(halves.gradients_in_fp32);
}

TEST(MindSpeed, NamesItsLayersBySpecification) {
  EXPECT_FALSE(model_of(kSpec + "qwen3_spec layer_spec").output_gate);
  EXPECT_EQ(stop_of(kSpec + "qwen9_spec layer_spec"), "spec");
  EXPECT_EQ(stop_of("--spec megatron.core.models.gpt.gpt_layer_specs gpt_spec"), "");
  const Transformer linear = model_of(kSpec +
                                      "qwen3_next_spec layer_spec --full-attention-interval 4 "
                                      "--mamba-d-conv 3 --mamba-expand 1 --mamba-chunk-size 32");
  EXPECT_TRUE(linear.output_gate);
  EXPECT_EQ(linear.layer_pattern, "RRRG");
  EXPECT_EQ(linear.linear->conv_kernel, 3);
  EXPECT_EQ(linear.linear->chunk_size, 32);
  const Transformer mamba = model_of(kSpec + "mamba_spec layer_spec --mamba-expand 1");
  EXPECT_EQ(mamba.layer_pattern, "M");
  EXPECT_EQ(mamba.linear->num_heads, 16);  // 1 x 1024 / 64
}

// A layer of LongCat-Flash is two of attention and MLP, and experts beside the second.
TEST(MindSpeed, PartsLayersWithExpertsInAShortcut) {
  const std::string longcat = kSpec +
                              "longcat_spec layer_spec --pipeline-model-parallel-size 2 "
                              "--num-experts 8 --moe-ffn-hidden-size 256 --moe-router-topk 3 "
                              "--recompute-granularity full --recompute-method block "
                              "--recompute-num-layers 2 --num-zero-experts ";
  const Scenario scenario = read(longcat + "4");
  const Transformer& model = scenario.modelled->model;
  EXPECT_EQ(model.num_layers, 40);
  EXPECT_EQ(model.layer_pattern, "*-*-E");
  EXPECT_EQ(model.experts->experts_per_token, 2);  // of 3, of which a third does nothing
  EXPECT_EQ(scenario.schedules[0].recompute->layers.first, 10);
  EXPECT_EQ(stop_of(longcat + "5"), "num_zero_experts");
}

TEST(MindSpeed, AttendsToTheTokensThatAnIndexerFinds) {
  const std::string latent =
      "--multi-latent-attention --kv-lora-rank 512 --q-lora-rank 512 --enable-mla-absorb "
      "--enable-dsa-indexer --index-topk 512 --index-n-heads 32 ";
  const Transformer model =
      model_of(latent + "--use-sparse-flash-attn --index-topk-freq 4 --index-skip-topk-offset 3");
  EXPECT_EQ(model.layer_pattern, "SSSTTTST");
  EXPECT_EQ(model.sparse->num_heads, 32);
  EXPECT_EQ(model.sparse->head_size, 128);
  EXPECT_EQ(model.sparse->topk, 512);
  EXPECT_EQ(model_of(latent + "--use-sparse-flash-attn").layer_pattern, "S");
  EXPECT_EQ(stop_of(latent), "enable_dsa_indexer");
  const auto heads = model_of(
      "--multi-latent-attention --kv-lora-rank 512 --qk-nope-head-dim 96 --qk-rope-head-dim 32");
  EXPECT_EQ(heads.latent->nope_head_size, 96);
  EXPECT_EQ(heads.latent->rope_head_size, 32);
}

// DeepSeek-V4's: a ratio a layer, of which that of an idle layer says nothing.
TEST(MindSpeed, CompressesTokensByRatiosOfLayers) {
  const std::string compressed =
      kSpec +
      "deepseek4_spec layer_spec --multi-latent-attention --qk-layernorm --qk-head-dim 256 "
      "--qk-pos-emb-head-dim 64 --q-lora-rank 512 --o-lora-rank 384 --o-groups 4 --n-hash-layers 2 "
      "--enable-mhc --hc-mult 3 --sliding-window-size 64 --position-embedding-type deepseek4 "
      "--enable-dsa-indexer --index-topk 256 --kv-compress ";
  const std::string ratios = "--use-sparse-flash-attn --compress-ratios 0 0 4 32 4 32 4 9 4 ";
  const Transformer model = model_of(compressed + ratios + "--num-layers 9 --noop-layers 7");
  EXPECT_EQ(model.layer_pattern, "WWXYXYXX");
  EXPECT_EQ(model.attention_window, 64);
  EXPECT_EQ(model.kv_channels, 256);
  EXPECT_EQ(model.num_query_groups, 1);
  EXPECT_EQ(model.rotary_percent, 0.25);
  EXPECT_EQ(model.residual_streams, 3);
  EXPECT_TRUE(model.sinks && !model.latent && model.positions == Positions::kRotary);
  EXPECT_EQ(*model.compressed, (CompressedAttention{512, 4, 384, 32, 4}));
  EXPECT_EQ(*model.sparse, (SparseAttention{64, 128, 256}));
  EXPECT_EQ(stop_of(compressed + ratios + "--num-layers 9"), "compress_ratios") << "two ratios";
  EXPECT_EQ(stop_of(compressed + ratios + "--num-layers 10"), "compress_ratios")
      << "one is missing";
  EXPECT_EQ(stop_of(compressed + "--compress-ratios 0 0 4 32 4 32 4 4"), "enable_dsa_indexer");
}

TEST(MindSpeed, SeesAWindowInEverySecondLayer) {
  const Transformer model = model_of("--interleave-sliding-window 512");
  EXPECT_EQ(model.layer_pattern, "WG");
  EXPECT_EQ(model.attention_window, 512);
  EXPECT_EQ(model_of("--sliding-window 512").layer_pattern, "W");
}

TEST(MindSpeed, AttendsWithinDocumentsOfOneLength) {
  const std::string flags = "--reset-attention-mask --fix-sub-seq-length ";
  const std::string text = scenario_of(drafted(flags + "512"));
  EXPECT_NE(text.find("lengths: {distribution: uniform, min: 512, max: 512}"), std::string::npos);
  (void)read(flags + "512");
  EXPECT_EQ(scenario_of(drafted(flags + "4096")).find("lengths:"), std::string::npos);
  EXPECT_EQ(stop_of(flags + "500"), "fix_sub_seq_length");
  EXPECT_EQ(stop_of("--reset-attention-mask"), "");
}

TEST(MindSpeed, CountsRecomputedLayersOfARank) {
  const std::string stages =
      "--pipeline-model-parallel-size 2 --recompute-granularity full --recompute-method block "
      "--enable-recompute-layers-per-pp-rank --num-layers-per-virtual-pipeline-stage ";
  const auto recomputed = [](const std::string& flags) {
    return *read(flags).schedules[0].recompute;
  };
  EXPECT_EQ(recomputed(stages + "2 --recompute-num-layers 2").layers.first, 1);
  EXPECT_EQ(recomputed(stages + "1 --recompute-num-layers 3").chunks, 3);
  EXPECT_EQ(recomputed(stages + "2 --recompute-num-layers 1").chunks, 1);
  EXPECT_EQ(recomputed(stages + "2 --recompute-num-layers 1").layers.first, 1);
  EXPECT_EQ(stop_of(stages + "2 --recompute-num-layers 3"), "enable_recompute_layers_per_pp_rank");
  EXPECT_EQ(recomputed(stages + "2 --recompute-num-layers 2 --recompute-in-advance").layers.first,
            1);
  EXPECT_EQ(stop_of("--recompute-in-advance --recompute-granularity full"), "recompute_in_advance");
  EXPECT_EQ(recomputed("--swap-attention --recompute-num-layers 3").layers.first, 3);
  const std::string part =
      "--recompute-granularity full --recompute-method block --recompute-activation-function "
      "--recompute-num-layers ";
  EXPECT_EQ(stop_of("--recompute-norm --recompute-norm-num-layers 8"), "");
  const Recompute norms = recomputed("--recompute-norm --recompute-norm-num-layers 4");
  EXPECT_EQ(norms.granularity, RecomputeModule::kLayerNorm);
  EXPECT_EQ(norms.layers.first, 4);
  const std::string chunks =
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 ";
  EXPECT_EQ(recomputed(chunks + "--recompute-norm --recompute-norm-num-layers 1").layers.first, 1);
  EXPECT_EQ(recomputed(chunks + "--recompute-norm --recompute-norm-num-layers 2").layers.first, 0);
  const std::string none = "--recompute-norm --recompute-norm-num-layers 0";
  EXPECT_EQ(recomputed(none).granularity, RecomputeGranularity::kNone);
  EXPECT_EQ(recomputed("--recompute-norm-num-layers 4").granularity, RecomputeGranularity::kNone);
  EXPECT_NE(stop_of("--recompute-granularity selective --recompute-norm "
                    "--recompute-norm-num-layers 4"),
            "");
  EXPECT_EQ(stop_of(part + "8"), "");
  EXPECT_EQ(recomputed(part + "4").layers.first, 4);
  EXPECT_EQ(recomputed(part + "4").layers.others,
            RecomputeModule::kMlpActivation | RecomputeModule::kMoeActivation);
  EXPECT_EQ(stop_of(stages + "1 --recompute-num-layers 3 --recompute-norm"),
            "recompute_num_layers");
  EXPECT_EQ(stop_of("--recompute-norm --recompute-norm-num-layers 4 --recompute-mla-up-proj"),
            "recompute_mla_up_proj_num_layers");
}

TEST(MindSpeed, SendsRowsToTheExpertsAgain) {
  const auto modules = [](const std::string& flags) {
    return to_text(read(flags).schedules[0].recompute->granularity);
  };
  EXPECT_EQ(modules("--moe-zero-memory level0 --moe-fb-overlap"), "moe_act+moe_dispatch");
  EXPECT_EQ(modules("--moe-zero-memory level0 --moe-alltoall-overlap-comm"),
            "moe_act+mlp_act+moe_dispatch");
  EXPECT_EQ(modules("--moe-zero-memory level1 --moe-alltoall-overlap-comm"), "moe");
  const std::string swaps = "--moe-zero-memory level1 --moe-fb-overlap --mla-swap-core-attn-out";
  EXPECT_EQ(modules(swaps), "moe_act+moe_dispatch");
  EXPECT_EQ(read(swaps).modelled->context.offloaded,
            OffloadModule::kMoeActivation | OffloadModule::kAttentionProjection);
  EXPECT_EQ(stop_of("--moe-zero-memory level1 --moe-zero-memory-num-layers 2"),
            "moe_zero_memory_num_layers");
  EXPECT_EQ(stop_of("--cla-share-factor 2"), "cla_share_factor") << "layers share their keys";
}

TEST(MindSpeed, RepeatsGroupedKeysBeforeHeadsAreDivided) {
  const std::string grouped = "--group-query-attention --num-query-groups 2 ";
  const auto repeats = [](const std::string& flags) {
    return read(flags + " --context-parallel-size 4").modelled->context.repeats_keys;
  };
  EXPECT_TRUE(repeats(grouped + "--context-parallel-algo ulysses_cp_algo"));
  EXPECT_TRUE(repeats(grouped + "--context-parallel-algo hybrid_cp_algo --ulysses-degree-in-cp 2"));
  EXPECT_FALSE(repeats("--context-parallel-algo ulysses_cp_algo")) << "every head has its own";
  EXPECT_FALSE(repeats(grouped + "--context-parallel-algo megatron_cp_algo"));
  EXPECT_EQ(stop_of("--context-parallel-size 2 --context-parallel-algo mamba_cp_algo"), "");
  EXPECT_EQ(scenario_of(drafted(grouped + "--context-parallel-size 2 --cp-comm-type a2a"))
                .find("kv_head_repeat"),
            std::string::npos)
      << "Megatron-LM repeats none";
}

TEST(MindSpeed, OverlapsMessages) {
  EXPECT_NE(scenario_of(drafted("--tensor-model-parallel-size 2 --use-ascend-mc2"))
                .find("tp_comm_overlap: true"),
            std::string::npos);
  const std::string both =
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 --num-experts 8 "
      "--expert-model-parallel-size 2 --moe-fb-overlap";
  EXPECT_NE(drafted(both).schedule.find("overlap_moe_expert_parallel_comm: true"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim::mindspeed_test
