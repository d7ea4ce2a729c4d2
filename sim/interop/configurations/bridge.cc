#include "sim/interop/configurations/bridge.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/interop/megatron/launch.h"

namespace pipesim {
namespace {

// A field, and what it is where the flag is absent; empty: not written.
struct Field {
  std::string_view flag;
  std::string_view section;
  std::string_view name;
  std::string_view absent = {};
};
constexpr std::array kFields{
    Field{"--tensor-model-parallel-size", "model", "tensor_model_parallel_size", "1"},
    Field{"--pipeline-model-parallel-size", "model", "pipeline_model_parallel_size", "1"},
    Field{"--num-virtual-stages-per-pipeline-rank", "model",
          "virtual_pipeline_model_parallel_size"},
    Field{"--microbatch-group-size-per-virtual-pipeline-stage", "model",
          "microbatch_group_size_per_vp_stage"},
    Field{"--pipeline-model-parallel-layout", "model", "pipeline_model_parallel_layout"},
    Field{"--context-parallel-size", "model", "context_parallel_size", "1"},
    Field{"--cp-comm-type", "model", "cp_comm_type"},
    Field{"--hierarchical-context-parallel-sizes", "model", "hierarchical_context_parallel_sizes"},
    Field{"--expert-model-parallel-size", "model", "expert_model_parallel_size", "1"},
    Field{"--expert-tensor-parallel-size", "model", "expert_tensor_parallel_size"},
    Field{"--sequence-parallel", "model", "sequence_parallel", "false"},
    Field{"--seq-length", "model", "seq_length"},
    Field{"--recompute-granularity", "model", "recompute_granularity", "null"},
    Field{"--recompute-method", "model", "recompute_method", "null"},
    Field{"--recompute-num-layers", "model", "recompute_num_layers", "null"},
    Field{"--recompute-modules", "model", "recompute_modules"},
    Field{"--moe-grouped-gemm", "model", "moe_grouped_gemm"},
    Field{"--moe-permute-fusion", "model", "moe_permute_fusion"},
    Field{"--use-transformer-engine-op-fuser", "model", "use_transformer_engine_op_fuser"},
    Field{"--moe-token-dispatcher-type", "model", "moe_token_dispatcher_type"},
    Field{"--moe-flex-dispatcher-backend", "model", "moe_flex_dispatcher_backend"},
    Field{"--moe-router-force-load-balancing", "model", "moe_router_force_load_balancing"},
    Field{"--moe-dispatch-fwd-dtype", "model", "moe_dispatch_fwd_dtype"},
    Field{"--moe-combine-bwd-dtype", "model", "moe_combine_bwd_dtype"},
    Field{"--fine-grained-activation-offloading", "model", "fine_grained_activation_offloading"},
    Field{"--offload-modules", "model", "offload_modules"},
    Field{"--cross-entropy-loss-fusion", "model", "cross_entropy_loss_fusion"},
    Field{"--no-bias-swiglu-fusion", "model", "bias_activation_fusion"},
    Field{"--attention-backend", "model", "attention_backend"},
    Field{"--hidden-dropout", "model", "hidden_dropout", "0.1"},
    Field{"--attention-dropout", "model", "attention_dropout", "0.1"},
    Field{"--no-gradient-accumulation-fusion", "model", "gradient_accumulation_fusion"},
    Field{"--global-batch-size", "train", "global_batch_size"},
    Field{"--micro-batch-size", "train", "micro_batch_size"},
    Field{"--use-precision-aware-optimizer", "optimizer", "use_precision_aware_optimizer"},
    Field{"--main-params-dtype", "optimizer", "main_params_dtype"},
    Field{"--main-grads-dtype", "optimizer", "main_grads_dtype"},
    Field{"--exp-avg-dtype", "optimizer", "exp_avg_dtype"},
    Field{"--exp-avg-sq-dtype", "optimizer", "exp_avg_sq_dtype"},
    Field{"--optimizer-cpu-offload", "optimizer", "optimizer_cpu_offload"},
    Field{"--optimizer-offload-fraction", "optimizer", "optimizer_offload_fraction"},
    Field{"--overlap-cpu-optimizer-d2h-h2d", "optimizer", "overlap_cpu_optimizer_d2h_h2d"},
    Field{"--use-distributed-optimizer", "ddp", "use_distributed_optimizer", "false"},
    Field{"--num-distributed-optimizer-instances", "ddp", "num_distributed_optimizer_instances"},
    Field{"--use-megatron-fsdp", "ddp", "use_megatron_fsdp"},
    Field{"--data-parallel-sharding-strategy", "ddp", "data_parallel_sharding_strategy"},
    Field{"--ckpt-format", "checkpoint", "ckpt_format"},
    Field{"--tp-comm-overlap", "comm_overlap", "tp_comm_overlap", "false"},
    Field{"--no-overlap-p2p-communication", "comm_overlap", "overlap_p2p_comm"},
    Field{"--overlap-grad-reduce", "comm_overlap", "overlap_grad_reduce", "false"},
    Field{"--overlap-param-gather", "comm_overlap", "overlap_param_gather", "false"},
    Field{"--overlap-moe-expert-parallel-comm", "comm_overlap", "overlap_moe_expert_parallel_comm"},
    Field{"--bf16", "mixed_precision", "bf16", "false"},
    Field{"--fp16", "mixed_precision", "fp16"},
    Field{"--fp8-format", "mixed_precision", "fp8"},
    Field{"--fp8-recipe", "mixed_precision", "fp8_recipe"},
    Field{"--fp8-param-gather", "mixed_precision", "fp8_param_gather"},
    Field{"--fp4-format", "mixed_precision", "fp4"},
};

// A flag without a value is true, or switches its field off; several values are a list.
std::string value_of(std::string_view flag, std::string_view words) {
  if (words.empty()) return flag.starts_with("--no-") ? "false" : "true";
  if (flag.ends_with("-dtype") && !flag.starts_with("--moe")) {
    static const std::map<std::string_view, std::string> kTorch{{"fp32", "torch.float32"},
                                                                {"fp16", "torch.float16"},
                                                                {"bf16", "torch.bfloat16"},
                                                                {"fp8", "torch.uint8"}};
    return kTorch.at(words);
  }
  const bool by_layer = flag == "--cp-comm-type" && words.find(' ') != std::string_view::npos;
  if (flag != "--recompute-modules" && flag != "--offload-modules" &&
      flag != "--hierarchical-context-parallel-sizes" && !by_layer) {
    return std::string(words);
  }
  std::istringstream stream{std::string(words)};
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return fmt::format("[{}]", fmt::join(all, ", "));
}

std::string text_of(const std::vector<std::string>& flags, const Field& field) {
  const auto found = std::ranges::find_if(flags, [&](const std::string& flag) {
    return std::string_view(flag).substr(0, flag.find(' ')) == field.flag;
  });
  if (found == flags.end()) return std::string(field.absent);
  const size_t space = found->find(' ');
  return value_of(field.flag, space == std::string::npos
                                  ? std::string_view()
                                  : std::string_view(*found).substr(space + 1));
}

}  // namespace

std::string bridge_text(const MegatronFlags& flags) {
  std::string text = "# Megatron-Bridge: over a recipe of the same model\n";
  for (const std::string& line : flags.left_out) text += fmt::format("# left out: {}\n", line);
  for (const std::string& note : flags.notes) text += fmt::format("# {}\n", note);
  for (const std::string& line : environment_of(flags)) text += fmt::format("# {}\n", line);
  std::string_view section;
  for (const Field& field : kFields) {
    const std::string value = text_of(flags.flags, field);
    if (value.empty()) continue;
    if (field.section != section) text += fmt::format("{}:\n", field.section);
    section = field.section;
    text += fmt::format("  {}: {}\n", field.name, value);
  }
  const bool in_fp32 = has_flag(flags.flags, "--fp16")
                           ? has_flag(flags.flags, "--accumulate-allreduce-grads-in-fp32")
                           : !has_flag(flags.flags, "--grad-reduce-in-bf16");
  return text + fmt::format("  grad_reduce_in_fp32: {}\n", in_fp32);
}

}  // namespace pipesim
