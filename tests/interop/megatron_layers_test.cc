// Layers of other kinds, precisions, recomputation and adapters in settings of Megatron-LM and its
// kin.
#include <gtest/gtest.h>

#include "models/layer_parameters.h"
#include "sim/core/error.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::megatron_layers_test {
namespace {

const std::string kRun =
    "run train.py --world-size 8 --vocab-size 32000 --make-vocab-size-divisible-by 1 --seq-length "
    "2048 --micro-batch-size 1 --global-batch-size 16 --hidden-dropout 0 --attention-dropout 0 "
    "--position-embedding-type rope --normalization RMSNorm --disable-bias-linear --swiglu "
    "--ffn-hidden-size 512 ";
const std::string kSmall = kRun + "--num-layers 8 --hidden-size 1024 --num-attention-heads 8 ";

Draft drafted(const std::string& text) {
  return megatron_draft(read_arguments("run.sh", text), "dgx-h100");
}

Scenario read(const Draft& draft) {
  EXPECT_TRUE(draft.missing.empty() && draft.stops.empty()) << summary_of(draft);
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

Transformer model_of(const std::string& flags) {
  return read(drafted(kSmall + "--bf16 " + flags)).modelled->model;
}

std::string stop_of(const std::string& flags) {
  const Draft draft = drafted(kSmall + "--bf16 " + flags);
  return draft.stops.empty() ? "" : draft.stops[0].first;
}

// Megatron-LM's own layers, the only ones of Megatron-DeepSpeed, are told to attend by one kernel.
TEST(MegatronLayers, KeepScoresWhereNoKernelFusesAttention) {
  const auto flash = [](const std::string& flags) {
    return read(drafted(kSmall + "--bf16 " + flags)).modelled->context.flash_attention;
  };
  EXPECT_TRUE(flash(""));
  EXPECT_FALSE(flash("--transformer-impl local"));
  EXPECT_TRUE(flash("--transformer-impl local --use-flash-attn"));
  EXPECT_FALSE(flash("--deepspeed"));
  EXPECT_TRUE(flash("--deepspeed --use-flash-attn-v2"));
  // Megatron-LM's of before Transformer Engine.
  EXPECT_FALSE(flash("--data-impl mmap"));
  EXPECT_TRUE(flash("--data-impl mmap --use-flash-attn"));
}

TEST(MegatronLayers, DropOutAsTheFrameworkDoesUnlessTold) {
  const auto drops = [](const std::string& more) {
    const Settings settings =
        read_yaml_settings("megatron", "c.yaml",
                           "world_size: 8\nmodel_name: {model: llama3-8b}\nseq_length: 4096\n"
                           "global_batch_size: 16\nmicro_batch_size: 1\n" +
                               more);
    const Draft draft = megatron_draft(settings, "dgx-h100");
    return has_key(draft.memory, "dropout");
  };
  EXPECT_TRUE(drops(""));
  EXPECT_FALSE(drops("recipe: llama3_8b_pretrain_config\n"));
}

TEST(MegatronLayers, ReadsLinearAttentionOfEveryNthLayer) {
  const Transformer model = model_of(
      "--experimental-attention-variant gated_delta_net --linear-attention-freq 4 "
      "--linear-num-value-heads 16 --attention-output-gate");
  EXPECT_EQ(model.layer_pattern, "RRRG");
  EXPECT_TRUE(model.output_gate);
  ASSERT_TRUE(model.linear);
  EXPECT_EQ(model.linear->kind, LinearAttention::Kind::kGatedDelta);
  EXPECT_EQ(model.linear->num_heads, 16);
  EXPECT_EQ(model.linear->key_heads, 16);
  EXPECT_EQ(stop_of("--experimental-attention-variant dsa"), "experimental_attention_variant");
}

TEST(MegatronLayers, ReadsHybridPatternsAndTheirStages) {
  const std::string hybrid =
      kRun + "--bf16 --hidden-size 1024 --num-attention-heads 8 --pipeline-model-parallel-size 2 ";
  const Scenario scenario = read(drafted(hybrid + "--hybrid-layer-pattern 'M-M|*-/MM'"));
  EXPECT_EQ(scenario.modelled->model.num_layers, 5);
  EXPECT_EQ(scenario.modelled->model.layer_pattern, "M-M*-");
  EXPECT_EQ(scenario.modelled->model.linear->num_heads, 32);  // 2 x 1024 / 64
  EXPECT_EQ(scenario.modelled->split.listed, (std::vector<int>{3, 2}));
  EXPECT_EQ(drafted(hybrid + "--hybrid-layer-pattern MZ").stops[0].first, "hybrid_layer_pattern");
}

// By hand, as mamba_hybrid_layer_allocation.py places them.
TEST(MegatronLayers, PlacesSharesOfAHybridsLayers) {
  const auto pattern = [](const std::string& flags) {
    return model_of("--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec " + flags)
        .layer_pattern;
  };
  EXPECT_EQ(pattern("--hybrid-attention-ratio 0.25"), "MM*");
  EXPECT_EQ(pattern("--hybrid-attention-ratio 0.125 --hybrid-mlp-ratio 0.5"), "M-M-*-");
  EXPECT_EQ(pattern(""), "M") << "without shares all layers are Mamba's";
  EXPECT_EQ(stop_of("--hybrid-attention-ratio 0.5 --hybrid-mlp-ratio 0.5"),
            "hybrid_attention_ratio");
  EXPECT_EQ(model_of("").layer_pattern, "");
}

TEST(MegatronLayers, ReadsWindows) {
  const Transformer model = model_of("--window-size 127,0 --window-attn-skip-freq 2");
  EXPECT_EQ(model.attention_window, 128);
  EXPECT_EQ(model.layer_pattern, "WG");
}

TEST(MegatronLayers, ReadsWhichLayersHaveExperts) {
  const std::string moe = "--num-experts 8 --moe-ffn-hidden-size 256 ";
  EXPECT_EQ(model_of(moe + "--moe-layer-freq 2").experts->every, 2);
  EXPECT_EQ(model_of(moe + "--moe-layer-freq ([0]*2+[1]*6)").experts->first_dense_layers, 2);
  const Experts after = *model_of(moe + "--moe-layer-freq ([0,1]*4)").experts;
  EXPECT_EQ(after.first_dense_layers, 1);
  EXPECT_EQ(after.every, 2);
  EXPECT_EQ(model_of(moe + "--first-k-dense-replace 3").experts->first_dense_layers, 3);
  EXPECT_EQ(model_of(moe + "--first-k-dense-replace -1").experts->first_dense_layers, 0);
  EXPECT_EQ(stop_of(moe + "--moe-layer-freq ([0,1,1]*2+[1]*2)"), "moe_layer_freq");
  // Megatron-DeepSpeed's, unless it says otherwise: every second layer, one expert a token.
  const Experts theirs = *model_of("--deepspeed --use-flash-attn --num-experts 8").experts;
  EXPECT_EQ(theirs.first_dense_layers, 1);
  EXPECT_EQ(theirs.every, 2);
  EXPECT_EQ(theirs.experts_per_token, 1);
  EXPECT_EQ(model_of("--deepspeed --num-experts 8 --expert-interval 1").experts->every, 1);
}

TEST(MegatronLayers, TakesPaddedExpertsForBalancedOnes) {
  const std::string moe = kSmall + "--bf16 --num-experts 8 --moe-ffn-hidden-size 256 ";
  const std::string padded = moe + "--moe-pad-expert-input-to-capacity ";
  const Draft balanced = drafted(padded + "--moe-expert-capacity-factor 1.0");
  EXPECT_NE(scenario_of(balanced).find("moe_router_force_load_balancing: true"), std::string::npos);
  EXPECT_EQ(model_of(padded + "--moe-expert-capacity-factor 1.5").experts->capacity_factor, 1.5);
  for (const std::string& cut :
       {moe + "--moe-expert-capacity-factor 1", padded + "--moe-expert-capacity-factor 0"}) {
    EXPECT_EQ(drafted(cut).stops.at(0).first, "moe_expert_capacity_factor") << cut;
  }
}

TEST(MegatronLayers, StopsAtAnOverlapThatMegatronRefuses) {
  const std::string overlap = "--bf16 --overlap-moe-expert-parallel-comm ";
  const std::string experts =
      overlap + "--num-experts 8 --moe-ffn-hidden-size 256 --expert-model-parallel-size ";
  EXPECT_TRUE(drafted(kSmall + experts + "2").stops.empty());
  for (const std::string& flags :
       {overlap, experts + "1", experts + "2 --recompute-granularity full"}) {
    EXPECT_EQ(stop_of(flags), "overlap_moe_expert_parallel_comm") << flags;
  }
}

TEST(MegatronLayers, ReadsMindSpeedsNames) {
  const Transformer model = model_of("--post-norm --attention-head-type multiquery");
  EXPECT_TRUE(model.post_norms);
  EXPECT_EQ(model.num_query_groups, 1);
  // Every tensor rank has the keys whole.
  EXPECT_EQ(
      model_of("--attention-head-type multiquery --tensor-model-parallel-size 4").num_query_groups,
      4);
  std::string plain = kSmall;
  plain.erase(plain.find("--swiglu "), 9);
  EXPECT_FALSE(read(drafted(plain + "--bf16")).modelled->model.gated_mlp);
  EXPECT_TRUE(read(drafted(plain + "--bf16 --gelu-tanh")).modelled->model.gated_mlp);
}

TEST(MegatronLayers, ReadsAModelOfBothDirectionsByItsHead) {
  EXPECT_TRUE(model_of("--bert-no-binary-head").bidirectional);
  EXPECT_EQ(stop_of("--tokenizer-type BertWordPieceCase"), "tokenizer_type");
  EXPECT_EQ(stop_of("--tokenizer-type Llama3Tokenizer --model-provider gpt"), "");
  EXPECT_EQ(stop_of("--model-provider llava_vlm"), "model_provider");
}

TEST(MegatronOptimizers, HaveAdamsStatesOrStop) {
  EXPECT_EQ(stop_of("--optimizer adam"), "");
  EXPECT_EQ(stop_of("--optimizer hybridadam"), "");
  EXPECT_EQ(stop_of("--optimizer muon"), "optimizer");
  EXPECT_EQ(stop_of("--optimizer sgd"), "optimizer");
}

TEST(MegatronLayers, ReadsSharedExpertsOfAnySize) {
  const std::string moe = "--num-experts 8 --moe-ffn-hidden-size 256 ";
  EXPECT_EQ(model_of(moe + "--moe-shared-expert-intermediate-size 512").experts->shared_experts, 2);
  const Experts own =
      *model_of(moe + "--moe-shared-expert-intermediate-size 384 --moe-shared-expert-gate").experts;
  EXPECT_EQ(own.shared_experts, 1);
  EXPECT_EQ(own.shared_ffn_hidden_size, 384);
  EXPECT_TRUE(own.shared_gate);
}

TEST(MegatronLayers, LeavesOutIdleOnes) {
  const Scenario scenario =
      read(drafted(kSmall + "--bf16 --pipeline-model-parallel-size 4 --noop-layers 6,7"));
  EXPECT_EQ(scenario.modelled->model.num_layers, 6);
  EXPECT_EQ(scenario.modelled->split.listed, (std::vector<int>{2, 2, 2, 0}));
}

TEST(MegatronPrecision, IsFp32WithoutAnother) {
  const Draft draft = drafted(kSmall);
  EXPECT_EQ(read(draft).modelled->context.precision, Precision::kFp32);
  EXPECT_EQ(draft.notes[0], "fp32, which it is where the settings name neither bf16 nor fp16");
}

TEST(MegatronRecompute, ReadsBlocksAndGroups) {
  const std::string full =
      kSmall + "--bf16 --pipeline-model-parallel-size 2 --recompute-granularity full ";
  const auto layers = [&](const std::string& flags) {
    return read(drafted(full + flags)).schedules[0].recompute->layers;
  };
  EXPECT_EQ(layers("--recompute-method block --recompute-num-layers 3").first, 3);
  EXPECT_EQ(layers("--recompute-method uniform --recompute-num-layers 2").group, 2);
  EXPECT_EQ(layers("--recompute-method block --recompute-num-layers 4").first, 4);
}

TEST(MegatronRecompute, StopsWhereTensorRanksDivideALayersInput) {
  const std::string parts = "--recompute-granularity full --partition-activations ";
  EXPECT_EQ(stop_of(parts + "--tensor-model-parallel-size 2"), "partition_activations");
  EXPECT_EQ(stop_of(parts), "");
}

TEST(MegatronRecompute, ReadsTheSettingOfExpertsAlone) {
  const std::string experts = kSmall + "--bf16 --num-experts 8 --moe-layer-recompute ";
  EXPECT_EQ(drafted(experts).recompute, "[core_attn, moe]");
  EXPECT_EQ(drafted(experts + "--recompute-granularity selective --recompute-modules mla_up_proj")
                .recompute,
            "[mla_up_proj, moe]");
}

TEST(MegatronAdapters, TrainAlone) {
  const Scenario scenario = read(drafted(kSmall + "--bf16 --lora-r 16 --lora-alpha 32"));
  EXPECT_EQ(scenario.modelled->context.adapter_rank, 16);
  const Draft asks = drafted(kSmall + "--bf16 --train-type lora");
  ASSERT_EQ(asks.missing.size(), 1U);
  EXPECT_EQ(asks.missing[0], "the rank of its adapters: lora_rank=N");
}

TEST(MegatronSchedules, AreNamedByItsKin) {
  const std::string four = kSmall + "--bf16 --pipeline-model-parallel-size 4 ";
  EXPECT_EQ(read(drafted(four + "--schedules-method dualpipev")).schedules[0].name, "dualpipev");
  EXPECT_EQ(drafted(four + "--schedules-method foo").stops[0].first, "schedules_method");
}

TEST(MegatronDeepSpeed, NamesItsStageOfZero) {
  const Scenario scenario = read(drafted(kSmall + "--bf16 --zero-stage 1"));
  EXPECT_TRUE(scenario.modelled->state.distributed_optimizer);
  EXPECT_FALSE(scenario.modelled->state.sharded_gradients);
}

}  // namespace
}  // namespace pipesim::megatron_layers_test
