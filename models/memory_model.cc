#include "models/memory_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "models/layer_parameters.h"
#include "models/step_cost.h"
#include "models/temporaries.h"
#include "models/vocabulary_share.h"

namespace pipesim {
namespace {

// Ranks that divide what is held of the same experts.
int expert_shards(const LayerContext& context, const ParameterState& state) {
  return context.tensor * context.context * state.shards() /
         (context.expert * context.expert_tensor);
}

// Bytes of a weight as ranks that divide it hold it, and gather it.
double sharded_weight_bytes(const LayerContext& context) {
  return context.fp8_parameters ? 1 : weight_bytes(context);
}

constexpr int kMostAtATime = 4;

// Keeps the largest of the numbers added.
class Largest {
 public:
  explicit Largest(int number) : number_(number) {}
  void add(Bytes bytes) {
    for (int i = 0; i < number_; ++i) {
      if (bytes > kept_[i]) std::swap(bytes, kept_[i]);
    }
  }
  [[nodiscard]] Bytes sum() const { return std::accumulate(kept_.begin(), kept_.end(), Bytes(0)); }

 private:
  int number_;
  std::array<Bytes, kMostAtATime> kept_{};
};

// Bytes of a microbatch's output or gradient, as a rank sends it; the largest of the stages.
Bytes message(const Transformer& model, const LayerContext& context,
              std::span<const StageLayers> stages) {
  Bytes largest;
  for (const StageLayers& stage : stages) {
    largest = std::max(largest, message_bytes(model, context, stage));
  }
  return largest;
}

}  // namespace

Bytes least_state(const Transformer& model, const LayerContext& context,
                  const ParameterState& state) {
  const double weight = sharded_weight_bytes(context);
  const double states = state.gradient_bytes() + state.optimizer.device_bytes();
  LayerContext alone = context;  // on one rank
  alone.tensor = alone.expert = alone.expert_tensor = 1;
  alone.vocabulary_devices = 0;
  const StageLayers all{0, model.num_layers, model.mtp_layers, true, true};
  const HeldParameters trained = held_parameters(model, alone, {&all, 1});
  const double all_weights = total_parameters(model) + mtp_parameters(model);
  return Bytes(all_weights * weight + (trained.dense + trained.expert) * states);
}

namespace {

// Layers that are not among those recomputed keep other tensors: B runs modules of theirs again, or
// they offload.
bool keeps_apart(const LayerContext& context) {
  return recomputes_apart(context) || (context.offloaded.any() && !context.recomputed_layers.all());
}

// The layers among `number` that do so, where `again` of them are recomputed.
int kept_apart(const LayerContext& context, int number, int again) {
  return keeps_apart(context) ? number - again : 0;
}

}  // namespace

MemoryModel::MemoryModel(const Transformer& model, const LayerContext& context,
                         const ParameterState& state)
    : model_(model), context_(context), state_(state) {
  const KindCounts counts = count_all(model);
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    memory_[kind] = layer_memory(model, kind, context);
    others_[kind] = keeps_apart(context) ? layer_memory(model, kind, context_of_others(context))
                                         : memory_[kind];
    temporaries_[kind] =
        temporaries(model, kind, context) + std::max(memory_[kind].rebuilt, others_[kind].rebuilt);
  }
}

// Adds the bytes that layers keep until B, where they are not recomputed whole.
void MemoryModel::add_kept(LayerKind kind, int number, int again, StageMemory& sum) const {
  const int apart = kept_apart(context_, number, again);
  sum.activation += (number - apart) * memory_[kind].activation;
  sum.offloaded += (number - apart) * memory_[kind].offloaded;
  if (apart == 0) return;
  sum.activation += apart * others_[kind].activation;
  sum.offloaded += apart * others_[kind].offloaded;
}

StageMemory MemoryModel::stage(const StageLayers& layers) const {
  KindCounts counts = count_layers(model_, layers);
  counts[LayerKind::kOutput] += layers.mtp;  // every MTP module makes logits of its own
  const KindCounts again = count_recomputed(model_, layers, context_.recomputed_layers);
  const int remade = std::accumulate(again.begin(), again.end(), 0);
  const int group = std::max(1, std::min(context_.recomputed_layers.group, remade));
  const double inputs = remade > 0 ? std::ceil(1.0 * remade / group) / remade : 1;
  StageMemory sum;
  Bytes largest;
  for (const LayerKind kind : kLayerKinds) {
    const int number = counts[kind];
    if (number == 0) continue;
    const LayerMemory& layer = of(kind);
    const LayerMemory& other = others_[kind];
    const Bytes whole = layer.activation + layer.offloaded;
    add_kept(kind, number, again[kind], sum);
    sum.weight_stash += number * layer.weight_stash;
    sum.checkpoint += inputs * again[kind] * layer.checkpoint;
    sum.checkpoint += (number - again[kind]) * other.activation;
    if (again[kind] > 0) largest = std::max(largest, group * whole - layer.checkpoint);
  }
  if (counts[LayerKind::kCross] > 0) {
    const Bytes encoded = encoded_bytes(model_, context_);
    sum.activation += encoded;
    sum.checkpoint += encoded;
    if (trains_model(context_)) sum.weight_stash += encoded;
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
    const bool embeds = stage.embedding || embeds_again(model_, stage);
    if (embeds && context_.vocabulary_devices == 0 && trains_vocabulary()) {
      // Its gradient comes whole, and last: what the microbatch kept on the stage is free by
      // then.
      const double gradient =
          weight_bytes(context_) * matrix() - this->stage(stage).activation.value();
      temporary = std::max(temporary, gradient);
    }
    const KindCounts counts = count_layers(model_, stage);
    for (const LayerKind kind : kLayerKinds) {
      const int number = counts[kind];
      if (number == 0) continue;
      temporary = std::max(temporary, temporaries_[kind].value());
      if (is_layer(kind)) add_layers(held, number, of(kind));
    }
  }
  held.vocabulary = vocabulary(stages);
  if (trains_vocabulary()) {
    held.on_host += Bytes(vocabulary_parameters(stages) * state_.optimizer.host_bytes() /
                          ranks(state_.distributed_optimizer).dense);
  }
  // An output and a gradient on their way out, and a gradient that has come in; what comes in
  // forward is the stage's first activation.
  held.buffers += 3 * message(model_, context_, stages) + Bytes(temporary) +
                  weights_on_their_way(stages) + activations_on_their_way(stages);
  held.overhead = kFrameworkOverhead;
  return held;
}

// Parameters of the embedding's matrix, or of the output's.
double MemoryModel::matrix() const {
  return 1.0 * model_.vocab_size * model_.hidden_size / context_.tensor;
}

double MemoryModel::gradient() const {
  const bool beside = state_.gradients_in_fp32 && !state_.in_fp32();
  return state_.gradient_bytes() + (beside ? state_.gradient_copy : 0);
}

bool MemoryModel::holds_whole_weights() const {
  return !state_.sharded_weights || !state_.reshard_after_forward;
}

MemoryModel::Ranks MemoryModel::ranks(bool sharded) const {
  if (!sharded) return {};
  return {1.0 * state_.shards() * context_.context, 1.0 * expert_shards(context_, state_)};
}

void MemoryModel::add_layers(DeviceMemory& held, int number, const LayerMemory& layer) const {
  const auto divided = [&](double bytes, const Ranks& over) {
    return Bytes(number * bytes *
                 (layer.dense_trained / over.dense + layer.expert_trained / over.expert));
  };
  if (state_.sharded_weights) {
    const Ranks over = ranks(true);
    held.weights +=
        Bytes(number * sharded_weight_bytes(context_) *
              (layer.dense_parameters / over.dense + layer.expert_parameters / over.expert));
  }
  if (holds_whole_weights()) held.weights += number * layer.weights;
  held.gradients += divided(gradient(), ranks(state_.reduces_every_microbatch()));
  held.optimizer += divided(state_.optimizer.device_bytes(), ranks(state_.distributed_optimizer));
  held.on_host += divided(state_.optimizer.host_bytes(), ranks(state_.distributed_optimizer));
}

Bytes MemoryModel::vocabulary(std::span<const StageLayers> stages) const {
  double weight = state_.sharded_weights ? weight_bytes(context_) / ranks(true).dense : 0;
  if (holds_whole_weights()) weight += weight_bytes(context_);
  const double trained = trains_vocabulary() ? 1 : 0;
  return Bytes(
      vocabulary_parameters(stages) *
      (weight + trained * gradient() / ranks(state_.reduces_every_microbatch()).dense +
       trained * state_.optimizer.device_bytes() / ranks(state_.distributed_optimizer).dense));
}

// Weights gathered for a pass, and gradients not yet divided, of the running layer and the next one
// or the one before it. The largest of the device.
Bytes MemoryModel::weights_on_their_way(std::span<const StageLayers> stages) const {
  if (!state_.reduces_every_microbatch() && holds_whole_weights()) return {};
  const bool gathers = !holds_whole_weights();
  Largest weights(gathers ? (context_.blocks ? 4 : 2) : 0);
  Largest gradients(state_.reduces_every_microbatch() ? 2 : 0);
  for (const StageLayers& stage : stages) {
    const KindCounts counts = count_layers(model_, stage);
    for (const LayerKind kind : kLayerKinds) {
      const LayerMemory& layer = of(kind);
      const int number = std::min(counts[kind], kMostAtATime);
      for (int i = 0; i < number; ++i) {
        weights.add(layer.weights);
        gradients.add(Bytes(gradient() * (layer.dense_trained + layer.expert_trained)));
      }
    }
  }
  if (context_.vocabulary_devices > 0) {
    const int matrices = model_.tied_embeddings ? 1 : 2;
    const double share = share_parameters(model_, context_) / matrices;
    for (int i = 0; i < matrices; ++i) {
      weights.add(Bytes(element_bytes(context_) * share));
      if (trains_vocabulary()) gradients.add(Bytes(gradient() * share));
    }
  }
  return weights.sum() + gradients.sum();
}

// Activations back from the host for the layer whose backward runs, and for the next one.
Bytes MemoryModel::activations_on_their_way(std::span<const StageLayers> stages) const {
  if (!context_.offloaded.any()) return {};
  Largest two(2);
  for (const StageLayers& stage : stages) {
    const KindCounts counts = count_layers(model_, stage);
    const KindCounts again = count_recomputed(model_, stage, context_.recomputed_layers);
    for (const LayerKind kind : kLayerKinds) {
      const int apart = kept_apart(context_, counts[kind], again[kind]);
      for (int i = 0; i < std::min(counts[kind] - apart, 2); ++i) two.add(of(kind).offloaded);
      for (int i = 0; i < std::min(apart, 2); ++i) two.add(others_[kind].offloaded);
    }
  }
  return two.sum();
}

// An end's parameters beside its matrix, unless other devices hold shares of that.
double MemoryModel::beside_matrix(LayerKind kind, bool held) const {
  if (!held) return 0;
  return of(kind).dense_parameters - (context_.vocabulary_devices > 0 ? 0 : matrix());
}

// A tied matrix stands once where both ends do. MTP modules use both matrices: where a module
// stands without them there are copies.
double MemoryModel::vocabulary_parameters(std::span<const StageLayers> stages) const {
  double beside = 0;  // positions and the final norm
  bool input = false;
  bool output = false;
  const bool shared = context_.vocabulary_devices > 0;
  for (const StageLayers& stage : stages) {
    const bool again = embeds_again(model_, stage);
    beside += beside_matrix(LayerKind::kEmbedding, stage.embedding);
    beside += beside_matrix(LayerKind::kDecoderEmbedding, again);
    beside += beside_matrix(LayerKind::kOutput, stage.output);
    if (stage.embedding && again) beside -= shared_embedding(model_, context_.tensor) - matrix();
    input = input || stage.embedding || again || stage.mtp > 0;
    output = output || stage.output || stage.mtp > 0;
  }
  if (shared) return beside + share_parameters(model_, context_);
  const int matrices = (input ? 1 : 0) + (output ? 1 : 0);
  return beside + matrix() * (model_.tied_embeddings ? std::min(matrices, 1) : matrices);
}

}  // namespace pipesim
