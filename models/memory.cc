#include "models/memory.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/memory_model.h"

namespace pipesim {
namespace {

constexpr double kElement = 2;  // bytes of bf16

// A layer's parts, in bytes of one microbatch.
struct LayerParts {
  double scores = 0;     // one copy of attention's scores, 0 with flash attention
  double gradients = 0;  // of the MLP: at its output, after and before its activation
  double mlp = 0;        // what the MLP keeps, freed when backward comes to attention
  double residual = 0;
};

LayerParts parts_of(const Transformer& model, bool moe, const LayerContext& context) {
  const double tokens = layer_tokens(context);
  const double halves = model.gated_mlp ? 2 : 1;
  LayerParts parts;
  parts.residual = divided_tokens(context) * model.hidden_size * kElement;
  double rows = tokens;
  double inner = tokens * model.ffn_hidden_size / context.tensor;
  if (moe) {
    rows = expert_rows(model, context);
    inner =
        rows * model.experts->ffn_hidden_size / context.expert_tensor +
        tokens * model.experts->shared_experts * model.experts->ffn_hidden_size / context.tensor;
  }
  const double output = rows * model.hidden_size * kElement;
  parts.gradients = output + (1 + halves) * inner * kElement;
  parts.mlp = 2 * parts.residual + (context.dropout ? parts.residual / kElement : 0.0) +
              (1 + halves) * inner * kElement;
  if (!context.flash_attention) {
    parts.scores =
        tokens * context.seq_length * model.num_attention_heads / context.tensor * kElement;
  }
  return parts;
}

}  // namespace

std::string fault_of(const Transformer& model, const LayerContext& context,
                     const ParameterState& state) {
  if (!model.experts) {
    if (context.expert == 1) return "";
    return fmt::format("expert_model_parallel_size is {}, but {} has no experts", context.expert,
                       model.name);
  }
  const int ranks = context.tensor * context.context * state.data;
  if (ranks % (context.expert * context.expert_tensor) == 0) return "";
  return fmt::format(
      "tensor x context x data parallel size {} does not divide by expert_model_parallel_size x "
      "expert_tensor_parallel_size {}",
      ranks, context.expert * context.expert_tensor);
}

Bytes temporaries(const Transformer& model, LayerKind kind, const LayerContext& context) {
  if (kind == LayerKind::kEmbedding) return Bytes(0);
  if (kind == LayerKind::kOutput) {
    if (context.vocabulary_devices > 0) return Bytes(0);
    // F has the logits as they come and in fp32, beside the softmax that it keeps.
    return Bytes(6 * layer_tokens(context) * model.vocab_size / context.tensor);
  }
  const bool moe = kind == LayerKind::kMoe ||
                   (kind == LayerKind::kMtp && mtp_layer_kind(model) == LayerKind::kMoe);
  const LayerParts parts = parts_of(model, moe, context);
  // Backward in the MLP, and in attention where the scores are made: Megatron-LM holds a buffer of
  // their size all along, and gradients of them before and after dropout.
  const double in_mlp = parts.scores + parts.gradients;
  const double in_attention = parts.scores * 3 + parts.residual - parts.mlp;
  return Bytes(std::max(in_mlp, in_attention));
}

MemoryEstimate estimate_memory(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& placement,
                               const ParameterState& state) {
  const MemoryModel memory(model, context, state);
  MemoryEstimate result;
  for (const StageLayers& stage : layout.stages) result.stages.push_back(memory.stage(stage));
  std::vector<StageLayers> held(placement.chunks());
  for (int device = 0; device < placement.devices(); ++device) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const int stage = placement.model_stage(placement.virtual_stage(device, chunk));
      held[chunk] = layout.stages[stage];
    }
    result.devices.push_back(memory.device(held));
  }
  return result;
}

std::optional<MemoryChange> nearest_change(const MemorySetting& now, Bytes capacity,
                                           const PeakOf& peak) {
  std::optional<MemoryChange> found;
  const auto offer = [&](bool possible, std::string words, auto change) {
    if (found || !possible) return;
    MemorySetting setting = now;
    change(setting);
    const auto bytes = peak(setting);
    if (bytes && *bytes <= capacity) found = MemoryChange{std::move(words), setting, *bytes};
  };
  const auto halve_data = [](MemorySetting& setting) {
    if (setting.state.data % 2 == 0) setting.state.data /= 2;
  };
  const RecomputeGranularity recompute = now.context.recompute;
  offer(!now.state.distributed_optimizer && now.state.data * now.context.context > 1,
        "use_distributed_optimizer",
        [](MemorySetting& setting) { setting.state.distributed_optimizer = true; });
  offer(
      recompute == RecomputeGranularity::kNone, "recompute: selective",
      [](MemorySetting& setting) { setting.context.recompute = RecomputeGranularity::kSelective; });
  offer(now.context.micro_batch_size > 1, "micro_batch_size 1",
        [](MemorySetting& setting) { setting.context.micro_batch_size = 1; });
  offer(recompute != RecomputeGranularity::kFull, "recompute: full",
        [](MemorySetting& setting) { setting.context.recompute = RecomputeGranularity::kFull; });
  offer(true, fmt::format("tensor_model_parallel_size {}", 2 * now.context.tensor),
        [&](MemorySetting& setting) {
          setting.context.tensor *= 2;
          halve_data(setting);
        });
  offer(true, fmt::format("pipeline_model_parallel_size {}", 2 * now.pipeline),
        [&](MemorySetting& setting) {
          setting.pipeline *= 2;
          halve_data(setting);
        });
  return found;
}

}  // namespace pipesim
