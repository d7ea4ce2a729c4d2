#include "models/memory_model.h"

#include <algorithm>

#include "models/layer_parameters.h"
#include "models/temporaries.h"
#include "models/vocabulary_share.h"

namespace pipesim {
namespace {

constexpr double kElement = 2;  // bytes of bf16
constexpr double kAdam = 12;    // bytes of an fp32 copy and two moments

// Ranks that hold the same experts.
int expert_data(const LayerContext& context, const ParameterState& state) {
  return context.tensor * context.context * state.data / (context.expert * context.expert_tensor);
}

double gradient_bytes(const ParameterState& state) {
  return state.gradients_in_fp32 ? 4 : kElement;
}

// Bytes of a microbatch's output or gradient, as a rank sends it.
double message(const Transformer& model, const LayerContext& context) {
  return message_bytes(model, context).value();
}

}  // namespace

Bytes least_state(const Transformer& model, const LayerContext& context,
                  const ParameterState& state) {
  const double weight = context.fp8_parameters ? 1 : kElement;
  return Bytes(total_parameters(model) * (weight + gradient_bytes(state) + kAdam));
}

MemoryModel::MemoryModel(const Transformer& model, const LayerContext& context,
                         const ParameterState& state)
    : model_(model), context_(context), state_(state) {
  for (const LayerKind kind : kLayerKinds) {
    if (count_all(model, kind) == 0) continue;
    memory_[kind] = layer_memory(model, kind, context);
    temporaries_[kind] = temporaries(model, kind, context) + memory_[kind].rebuilt;
  }
}

StageMemory MemoryModel::stage(const StageLayers& layers) const {
  StageMemory sum;
  Bytes largest;
  for (const LayerKind kind : kLayerKinds) {
    // Every MTP module makes logits of its own.
    const int own = count(model_, layers, kind);
    const int number = kind == LayerKind::kOutput ? own + layers.mtp : own;
    if (number == 0) continue;
    sum.activation += number * of(kind).activation;
    sum.weight_stash += number * of(kind).weight_stash;
    sum.checkpoint += number * of(kind).checkpoint;
    largest = std::max(largest, of(kind).activation - of(kind).checkpoint);
  }
  sum.recomputed = sum.checkpoint + largest;
  return sum;
}

DeviceMemory MemoryModel::device(std::span<const StageLayers> stages) const {
  DeviceMemory held;
  double temporary = 0;
  if (context_.vocabulary_devices > 0) {
    temporary = share_temporaries(model_, context_).value();
    held.buffers = share_buffers(model_, context_);
  }
  for (const StageLayers& stage : stages) {
    if (stage.embedding && context_.vocabulary_devices == 0) {
      // Its gradient comes whole, and last: what the microbatch kept on the stage is free by
      // then.
      const double gradient = kElement * matrix() - this->stage(stage).activation.value();
      temporary = std::max(temporary, gradient);
    }
    for (const LayerKind kind : kLayerKinds) {
      const int number = count(model_, stage, kind);
      if (number == 0) continue;
      temporary = std::max(temporary, temporaries_[kind].value());
      if (is_layer(kind)) add_layers(held, number, of(kind));
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

// Parameters of the embedding's matrix, or of the output's.
double MemoryModel::matrix() const {
  return 1.0 * model_.vocab_size * model_.hidden_size / context_.tensor;
}

double MemoryModel::gradient() const { return gradient_bytes(state_); }

double MemoryModel::dense_ranks() const {
  return state_.distributed_optimizer ? state_.data * context_.context : 1;
}

void MemoryModel::add_layers(DeviceMemory& held, int number, const LayerMemory& layer) const {
  const double expert_ranks = state_.distributed_optimizer ? expert_data(context_, state_) : 1;
  held.weights += number * layer.weights;
  held.gradients += Bytes(number * gradient() * (layer.dense_parameters + layer.expert_parameters));
  held.optimizer +=
      Bytes(number * kAdam *
            (layer.dense_parameters / dense_ranks() + layer.expert_parameters / expert_ranks));
}

// A tied matrix stands once where both ends do. MTP modules use both matrices: where a module
// stands without them there are copies.
double MemoryModel::vocabulary_parameters(std::span<const StageLayers> stages) const {
  double beside = 0;  // positions and the final norm
  bool input = false;
  bool output = false;
  const bool shared = context_.vocabulary_devices > 0;
  const double counted = shared ? 0 : matrix();
  for (const StageLayers& stage : stages) {
    if (stage.embedding) beside += of(LayerKind::kEmbedding).dense_parameters - counted;
    if (stage.output) beside += of(LayerKind::kOutput).dense_parameters - counted;
    input = input || stage.embedding || stage.mtp > 0;
    output = output || stage.output || stage.mtp > 0;
  }
  if (shared) return beside + share_parameters(model_, context_);
  const int matrices = (input ? 1 : 0) + (output ? 1 : 0);
  return beside + matrix() * (model_.tied_embeddings ? std::min(matrices, 1) : matrices);
}

}  // namespace pipesim
