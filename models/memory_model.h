// The memory of stages and devices for one model and setting, asked for many splits of its layers:
// the inside of estimate_memory (models/memory.h).
#pragma once

#include <span>

#include "models/device_memory.h"
#include "models/layer_memory.h"
#include "models/layout.h"

namespace pipesim {

// Keeps references to the model and the context, of which with the state both faults must be empty.
// Nothing allocates.
class MemoryModel {
 public:
  MemoryModel(const Transformer& model, const LayerContext& context, const ParameterState& state);

  [[nodiscard]] StageMemory stage(const StageLayers& layers) const;
  // Bytes of a device that holds these stages. O(stages).
  [[nodiscard]] DeviceMemory device(std::span<const StageLayers> stages) const;

 private:
  [[nodiscard]] const LayerMemory& of(LayerKind kind) const { return memory_[kind]; }
  void add_kept(LayerKind kind, int number, int again, StageMemory& sum) const;
  [[nodiscard]] double matrix() const;
  [[nodiscard]] double beside_matrix(LayerKind kind, bool held) const;
  [[nodiscard]] double gradient() const;
  // Over how many ranks parameters are divided where they are sharded.
  struct Ranks {
    double dense = 1;
    double expert = 1;
  };
  [[nodiscard]] bool holds_whole_weights() const;
  [[nodiscard]] Ranks ranks(bool sharded) const;
  void add_layers(DeviceMemory& held, int number, const LayerMemory& layer) const;
  [[nodiscard]] Bytes vocabulary(std::span<const StageLayers> stages) const;
  [[nodiscard]] bool trains_vocabulary() const { return trains_model(context_); }
  [[nodiscard]] double vocabulary_parameters(std::span<const StageLayers> stages) const;
  [[nodiscard]] Bytes weights_on_their_way(std::span<const StageLayers> stages) const;
  [[nodiscard]] Bytes activations_on_their_way(std::span<const StageLayers> stages) const;

  const Transformer& model_;
  const LayerContext& context_;
  ParameterState state_;
  EnumArray<LayerKind, LayerMemory> memory_{};
  EnumArray<LayerKind, LayerMemory> others_{};  // of layers that are not among those recomputed
  EnumArray<LayerKind, Bytes> temporaries_{};
};

}  // namespace pipesim
