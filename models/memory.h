// What a GPU of a pipeline position holds, by category, for a model, a layout and parallel sizes.
//
// A parameter takes 2 bytes as weight, 4 or 2 as gradient (fp32 or as the weight) and 12 in Adam's
// state (an fp32 copy and two moments): 18 or 16, of which the 12 are divided over the ranks that
// reduce its gradient when the optimizer is sharded (Rajbhandari 2020, arXiv 1910.02054, stage 1;
// Megatron-LM's distributed optimizer). Dense gradients are reduced over data and context ranks,
// those of experts over the ranks that hold the same experts. The fp32 copy of 16-bit gradients
// that a step makes is not counted: no activations are held then.
//
// Activations are models/layer_memory.h's, per microbatch and stage; how many microbatches a device
// holds is the schedule's doing. Buffers are held beside them while a pass runs. O(layer
// kinds x stages); allocates the result only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layer_context.h"
#include "models/layout.h"
#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

// How gradients and the optimizer's state are held.
struct ParameterState {
  int data = 1;                        // data-parallel ranks
  bool gradients_in_fp32 = true;       // accumulate_allreduce_grads_in_fp32
  bool distributed_optimizer = false;  // use_distributed_optimizer
};

// Bytes that a GPU holds before anything of the model: CUDA's context and
// kernels, NCCL's communicators. Assumed: 0.5 GiB each; it depends on driver, libraries and number
// of groups, and is not part of what PyTorch reports as allocated.
inline constexpr Bytes kFrameworkOverhead = 1.0 * kGiB;

struct DeviceMemory {
  Bytes weights;     // of layers; embedding and output are `vocabulary`
  Bytes gradients;   // likewise
  Bytes optimizer;   // likewise
  Bytes vocabulary;  // weights, gradients and optimizer state of embedding and output
  Bytes buffers;     // messages on their way, and temporaries of the pass that needs most
  Bytes overhead;    // kFrameworkOverhead

  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimizer + vocabulary + buffers + overhead;
  }
};

// Of a microbatch on a stage (LayerMemory summed over its layers).
struct StageMemory {
  Bytes activation;
  Bytes weight_stash;  // may exceed `activation`
  Bytes checkpoint;    // what F keeps where the stage is recomputed: the input of every layer
};

struct MemoryEstimate {
  std::vector<StageMemory> stages;    // by model stage
  std::vector<DeviceMemory> devices;  // by device
};

// Why the sizes cannot stand together, in words that name Megatron's sizes; empty when they can.
std::string fault_of(const Transformer& model, const LayerContext& context,
                     const ParameterState& state);

// Requires both faults (here and fault_of(model, context)) to be empty, and the layout to have as
// many stages as the placement. Full recompute is the schedule's doing: `stages` says what F keeps
// with it and without.
MemoryEstimate estimate_memory(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& placement,
                               const ParameterState& state);

// Weights, gradients and optimizer states of every parameter once: no layout holds less on all its
// GPUs together.
Bytes least_state(const Transformer& model, const ParameterState& state);

// Bytes that a layer's passes need beyond what is kept, at their largest (docs/reference/model.md,
// "Buffers").
Bytes temporaries(const Transformer& model, LayerKind kind, const LayerContext& context);

// A setting whose memory can be asked for.
struct MemorySetting {
  LayerContext context;  // its recompute is what the schedule is run with
  ParameterState state;
  int pipeline = 1;
};

struct MemoryChange {
  std::string words;  // "use_distributed_optimizer"
  MemorySetting setting;
  Bytes peak;
};

// The first single change after which `peak` is within `capacity`, in the order of what it costs in
// time: distributed optimizer, selective recompute, micro batch 1 (the microbatches grow in
// number), full recompute, twice the tensor ranks (data-parallel ranks halved where they are even),
// twice the pipeline devices (likewise). `peak` is nothing where a setting is not possible. Empty
// when none fits.
using PeakOf = std::function<std::optional<Bytes>(const MemorySetting&)>;
std::optional<MemoryChange> nearest_change(const MemorySetting& now, Bytes capacity,
                                           const PeakOf& peak);

}  // namespace pipesim
