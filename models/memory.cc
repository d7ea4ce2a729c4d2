#include "models/memory.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "models/layer_memory.h"
#include "models/vocabulary_share.h"

namespace pipesim {
namespace {

constexpr double kElement = 2;  // bytes of bf16
constexpr double kAdam = 12;    // bytes of an fp32 copy and two moments
constexpr std::array kLayerKinds{LayerKind::kEmbedding, LayerKind::kDense, LayerKind::kMoe,
                                 LayerKind::kMtp, LayerKind::kOutput};

// Ranks that hold the same experts.
int expert_data(const LayerContext& context, const ParameterState& state) {
  return context.tensor * context.context * state.data / (context.expert * context.expert_tensor);
}

// Bytes of a microbatch's output or gradient, as a rank sends it.
double message(const Transformer& model, const LayerContext& context) {
  return message_bytes(model, context).value();
}

class Estimate {
 public:
  Estimate(const Transformer& model, const LayerContext& context, const ParameterState& state)
      : model_(model), context_(context), state_(state) {
    for (const LayerKind kind : kLayerKinds) {
      const bool experts = kind == LayerKind::kMoe && !model.experts;
      const bool mtp = kind == LayerKind::kMtp && model.mtp_layers == 0;
      if (experts || mtp) continue;
      memory_[static_cast<size_t>(kind)] = layer_memory(model, kind, context);
      temporaries_[static_cast<size_t>(kind)] = temporaries(model, kind, context);
    }
  }

  [[nodiscard]] StageMemory stage(const StageLayers& layers) const {
    StageMemory sum;
    for (const LayerKind kind : kLayerKinds) {
      // Every MTP module makes logits of its own.
      const int own = count(model_, layers, kind);
      const int number = kind == LayerKind::kOutput ? own + layers.mtp : own;
      if (number == 0) continue;
      sum.activation += number * of(kind).activation;
      sum.weight_stash += number * of(kind).weight_stash;
      sum.checkpoint += number * of(kind).checkpoint;
    }
    return sum;
  }

  [[nodiscard]] DeviceMemory device(const std::vector<const StageLayers*>& stages) const {
    DeviceMemory held;
    double temporary = 0;
    if (context_.vocabulary_devices > 0) {
      temporary = share_temporaries(model_, context_).value();
      held.buffers = share_buffers(model_, context_);
    }
    for (const StageLayers* stage : stages) {
      if (stage->embedding && context_.vocabulary_devices == 0) {
        // Its gradient comes whole, and last: what the microbatch kept on the stage is free by
        // then.
        const double gradient = kElement * matrix() - this->stage(*stage).activation.value();
        temporary = std::max(temporary, gradient);
      }
      for (const LayerKind kind : kLayerKinds) {
        const int number = count(model_, *stage, kind);
        if (number == 0) continue;
        temporary = std::max(temporary, temporaries_[static_cast<size_t>(kind)].value());
        if (kind != LayerKind::kEmbedding && kind != LayerKind::kOutput) {
          add_layers(held, number, of(kind));
        }
      }
    }
    held.vocabulary =
        Bytes(vocabulary_parameters(stages) * (kElement + gradient() + kAdam / dense_ranks()));
    // An output and a gradient on their way out, and a gradient that has come in; what comes in
    // forward is the stage's first activation.
    held.buffers += Bytes(3 * message(model_, context_) + temporary);
    held.overhead = kFrameworkOverhead;
    return held;
  }

 private:
  [[nodiscard]] const LayerMemory& of(LayerKind kind) const {
    return memory_[static_cast<size_t>(kind)];
  }
  // Parameters of the embedding's matrix, or of the output's.
  [[nodiscard]] double matrix() const {
    return 1.0 * model_.vocab_size * model_.hidden_size / context_.tensor;
  }
  [[nodiscard]] double gradient() const { return state_.gradients_in_fp32 ? 4 : kElement; }
  [[nodiscard]] double dense_ranks() const {
    return state_.distributed_optimizer ? state_.data * context_.context : 1;
  }

  void add_layers(DeviceMemory& held, int number, const LayerMemory& layer) const {
    const double expert_ranks = state_.distributed_optimizer ? expert_data(context_, state_) : 1;
    held.weights += number * layer.weights;
    held.gradients +=
        Bytes(number * gradient() * (layer.dense_parameters + layer.expert_parameters));
    held.optimizer +=
        Bytes(number * kAdam *
              (layer.dense_parameters / dense_ranks() + layer.expert_parameters / expert_ranks));
  }

  // A tied matrix stands once where both ends do. MTP modules use both matrices: where a module
  // stands without them there are copies.
  [[nodiscard]] double vocabulary_parameters(const std::vector<const StageLayers*>& stages) const {
    double beside = 0;  // positions and the final norm
    bool input = false;
    bool output = false;
    const bool shared = context_.vocabulary_devices > 0;
    const double counted = shared ? 0 : matrix();
    for (const StageLayers* stage : stages) {
      if (stage->embedding) beside += of(LayerKind::kEmbedding).dense_parameters - counted;
      if (stage->output) beside += of(LayerKind::kOutput).dense_parameters - counted;
      input = input || stage->embedding || stage->mtp > 0;
      output = output || stage->output || stage->mtp > 0;
    }
    if (shared) return beside + share_parameters(model_, context_);
    const int matrices = (input ? 1 : 0) + (output ? 1 : 0);
    return beside + matrix() * (model_.tied_embeddings ? std::min(matrices, 1) : matrices);
  }

  const Transformer& model_;
  const LayerContext& context_;
  const ParameterState& state_;
  std::array<LayerMemory, kLayerKinds.size()> memory_{};
  std::array<Bytes, kLayerKinds.size()> temporaries_{};
};

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
  const Estimate estimate(model, context, state);
  MemoryEstimate result;
  for (const StageLayers& stage : layout.stages) result.stages.push_back(estimate.stage(stage));
  for (int device = 0; device < placement.devices(); ++device) {
    std::vector<const StageLayers*> held;
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const int stage = placement.model_stage(placement.virtual_stage(device, chunk));
      held.push_back(&layout.stages[static_cast<size_t>(stage)]);
    }
    result.devices.push_back(estimate.device(held));
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
