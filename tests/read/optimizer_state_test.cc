#include "sim/read/optimizer_state.h"

#include <gtest/gtest.h>

#include "sim/read/scenario.h"
#include "tests/case/cases.h"

namespace pipesim::optimizer_state_test {
namespace {

constexpr const char* kBase =
    "model: mixtral-8x7b\ncluster: dgx-h100\nschedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4, data_parallel_size: 8}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n"
    "memory: {use_distributed_optimizer: true}\n";

OptimizerState optimizer_of(const Changes& changes) {
  return read_changed(kBase, changes).modelled->state.optimizer;
}

bool refuses(const Changes& changes, const std::string& words) {
  return refusal_of(kBase, changes).find(words) != std::string::npos;
}

TEST(ReadOptimizerState, TakesMegatronsWords) {
  EXPECT_EQ(optimizer_of({}).bytes(), 12);
  EXPECT_EQ(
      optimizer_of({{"memory.exp_avg_dtype", "bf16"}, {"memory.exp_avg_sq_dtype", "fp8"}}).bytes(),
      4 + 2 + 1);
  EXPECT_EQ(optimizer_of({{"memory.main_params_dtype", "fp16"}}).main_params, 2);
  EXPECT_EQ(optimizer_of({{"memory.store_param_remainders", "true"}}).main_params, 2);
  const Scenario sixteen = read_changed(kBase, {{"memory.main_grads_dtype", "bf16"}});
  EXPECT_FALSE(sixteen.modelled->state.gradients_in_fp32);
  EXPECT_TRUE(sixteen.modelled->state.optimizer.reads_16_bit_gradients);
  const OptimizerState host = optimizer_of({{"memory.optimizer_offload_fraction", "0.5"},
                                            {"memory.overlap_cpu_optimizer_d2h_h2d", "true"}});
  EXPECT_EQ(host.device_bytes(), 6);
  EXPECT_TRUE(host.overlaps_host);
  const OptimizerState swapped = optimizer_of({{"memory.swap_optimizer", "true"}});
  EXPECT_EQ(swapped.device_bytes(), 0);
  EXPECT_TRUE(swapped.swapped);
}

TEST(ReadOptimizerState, RefusesWhatContradictsItself) {
  EXPECT_TRUE(refuses(
      {{"memory.main_grads_dtype", "bf16"}, {"memory.accumulate_allreduce_grads_in_fp32", "true"}},
      "summed in fp32"));
  EXPECT_TRUE(refuses({{"memory.precision", "fp16"}, {"memory.store_param_remainders", "true"}},
                      "weights in bf16"));
  EXPECT_TRUE(
      refuses({{"memory.main_params_dtype", "fp16"}, {"memory.store_param_remainders", "true"}},
              "main_params_dtype: fp32"));
  EXPECT_TRUE(refuses(
      {{"memory.optimizer_offload_fraction", "1"}, {"memory.store_param_remainders", "true"}},
      "needs the weights beside it"));
  EXPECT_TRUE(
      refuses({{"memory.optimizer_offload_fraction", "1"}, {"memory.swap_optimizer", "true"}},
              "in place of optimizer_offload_fraction"));
  EXPECT_TRUE(refuses({{"memory.overlap_cpu_optimizer_d2h_h2d", "true"}},
                      "needs an optimizer_offload_fraction"));
  EXPECT_TRUE(refuses({{"memory.exp_avg_dtype", "fp6"}}, "'fp6' is not known"));
}

TEST(ReadPrecision, KeepsNoCopyOfWeightsInFp32) {
  const Modelled modelled = *read_changed(kBase, {{"memory.precision", "fp32"}}).modelled;
  EXPECT_EQ(modelled.state.weight_bytes, 4);
  EXPECT_EQ(modelled.state.optimizer.bytes(), 8);
  EXPECT_EQ(element_bytes(modelled.context), 4);
  EXPECT_FALSE(modelled.context.flash_attention);
  const Changes less{{"memory.precision", "fp32"},
                     {"memory.accumulate_allreduce_grads_in_fp32", "false"}};
  EXPECT_EQ(read_changed(kBase, less).modelled->state.gradient_bytes(), 4);
  for (const auto& [key, value] :
       {std::pair("memory.main_params_dtype", "fp16"), std::pair("memory.main_grads_dtype", "bf16"),
        std::pair("memory.store_param_remainders", "true")}) {
    EXPECT_NE(refusal_of(kBase, {{"memory.precision", "fp32"}, {key, value}}), "") << key;
  }
}

TEST(ReadPrecision, KnowsFp16FromBf16) {
  const Modelled modelled = *read_changed(kBase, {{"memory.precision", "fp16"}}).modelled;
  EXPECT_EQ(modelled.precision, "fp16");
  EXPECT_EQ(modelled.state.gradient_bytes(), 2);
}

TEST(ReadRecompute, TakesAPartOfTheLayers) {
  const auto layers = [](const std::string& recompute) {
    return read_changed(kBase, {{"recompute", recompute}}).schedules[0].recompute->layers;
  };
  EXPECT_EQ(layers("{granularity: full, method: block, num_layers: 3}"),
            (RecomputedLayers{.first = 3}));
  EXPECT_EQ(layers("{granularity: full, num_layers: 3}"), (RecomputedLayers{.group = 3}));
  EXPECT_EQ(layers("{granularity: full, every: 2}"), (RecomputedLayers{.every = 2}));
  EXPECT_TRUE(refuses({{"recompute", "{granularity: full, method: block}"}}, "needs num_layers"));
  const RecomputeModule act = RecomputeModule::kMlpActivation;
  EXPECT_EQ(layers("{granularity: full, method: block, num_layers: 3, others: [mlp_act]}"),
            (RecomputedLayers{.first = 3, .others = act}));
  EXPECT_EQ(layers("{granularity: [mlp_act], method: block, num_layers: 3}"),
            (RecomputedLayers{.first = 3}));
  EXPECT_TRUE(refuses({{"recompute", "{granularity: none, every: 2}"}}, "is of granularity"));
  EXPECT_TRUE(refuses({{"recompute", "{granularity: [mlp_act], num_layers: 2}"}}, "method: block"));
  EXPECT_TRUE(refuses({{"recompute", "{granularity: full, others: [mlp_act]}"}}, "there are none"));
  EXPECT_TRUE(
      refuses({{"recompute", "{granularity: [mlp_act], others: [moe_act]}"}}, "is of granularity"));
}

TEST(ReadRecompute, TakesTheEncoderApart) {
  for (const char* apart :
       {"{granularity: full, encoder: none}", "{granularity: full, encoder: full}",
        "{granularity: none, encoder: none}"}) {
    EXPECT_TRUE(refuses({{"recompute", apart}}, "has no encoder")) << apart;
  }
  EXPECT_TRUE(
      refuses({{"recompute", "{granularity: [mlp_act], encoder: full}"}}, "beside modules"));
  EXPECT_TRUE(refuses({{"recompute", "{granularity: [mlp_act], method: uniform}"}}, "block"));
}

TEST(ReadPrecision, KeepsWeightsInFp32UnderAutocast) {
  const Modelled modelled = *read_changed(kBase, {{"memory.autocast", "true"}}).modelled;
  EXPECT_TRUE(modelled.context.fp32_weights);
  EXPECT_TRUE(modelled.context.flash_attention);
  EXPECT_EQ(modelled.context.precision, Precision::kBf16);
  EXPECT_EQ(modelled.state.gradient_bytes(), 4);
  EXPECT_EQ(modelled.state.optimizer.bytes(), 8);
  const std::pair<const char*, const char*> autocast{"memory.autocast", "true"};
  EXPECT_NE(refusal_of(kBase, {autocast, {"memory.precision", "fp32"}}), "");
  EXPECT_NE(refusal_of(kBase, {autocast, {"memory.store_param_remainders", "true"}}), "");
  EXPECT_NE(refusal_of(kBase, {autocast,
                               {"memory.data_parallel_sharding_strategy", "optim_grads_params"}}),
            "");
  EXPECT_NE(refusal_of(kBase, {autocast, {"memory.accumulate_allreduce_grads_in_fp32", "false"}}),
            "");
  EXPECT_NE(refusal_of(kBase, {autocast, {"schedule", "{name: seq-1f1b, splits: 4}"}}), "");
}

TEST(ReadKeptActivations, TakesModulesAndBits) {
  const LayerContext context =
      read_changed(kBase, {{"memory.offload_modules", "[core_attn, moe_act]"},
                           {"memory.activation_func_fp8_input_store", "true"},
                           {"memory.attention_output_bits", "12"},
                           {"cost.moe_dispatch_fwd_dtype", "mxfp8"}})
          .modelled->context;
  EXPECT_EQ(context.offloaded, OffloadModule::kCoreAttention | OffloadModule::kMoeActivation);
  EXPECT_TRUE(context.fp8_activation_input);
  EXPECT_EQ(context.attention_output_bits, 12);
  EXPECT_TRUE(context.fp8_dispatch);
  EXPECT_FALSE(context.fp8_combine_gradient);
  EXPECT_EQ(to_text(context.offloaded, "+"), "core_attn+moe_act");
  EXPECT_TRUE(refuses({{"memory.offload_modules", "[core_atn]"}}, "did you mean 'core_attn'"));
  EXPECT_TRUE(refuses({{"memory.offload_modules", "[core_attn]"}, {"offload", "true"}},
                      "leave out one of the two"));
  EXPECT_TRUE(refuses({{"memory.flash_attention", "false"}, {"memory.attention_output_bits", "12"}},
                      "is of flash_attention"));
}

}  // namespace
}  // namespace pipesim::optimizer_state_test
