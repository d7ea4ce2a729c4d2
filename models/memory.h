// A GPU's bytes at a pipeline position, by category, for a model, a layout and parallel sizes.
//
// A parameter takes 18 or 16 bytes. Its weight has 2, its gradient 4 or 2 (fp32 or as the weight),
// Adam's state 12 (an fp32 copy and two moments). A sharded optimizer divides the 12 over the ranks
// that reduce the parameter's gradient (Rajbhandari 2020, arXiv 1910.02054, stage 1; Megatron-LM's
// distributed optimizer). Stage 2 also divides gradients, and stage 3 weights (ParameterState).
// Dense gradients are reduced over data and context ranks, those of experts over the ranks that
// hold the same experts. Where only some data ranks divide a copy, the reduction is over these. The
// fp32 copy of 16-bit gradients that a step makes is not counted: no activations are held then.
//
// Beside the divided state, buffers hold the whole parameters of the running layer and the next
// one. They are weights gathered for a pass and gradients before they are reduced. The device's two
// largest layers are counted, as FSDP2 and Megatron-FSDP gather one ahead. Where F of one
// microbatch runs beside BW of another, weights of four count. Weights that are not freed after
// their forward are held whole all the time.
//
// Activations are models/layer_memory.h's, per microbatch and stage; the schedule decides how many
// microbatches a device holds. Buffers are held beside them while a pass runs. O(layer kinds x
// stages); allocates the result only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/device_memory.h"
#include "models/layer_context.h"
#include "models/layout.h"
#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

struct MemoryEstimate {
  std::vector<StageMemory> stages;    // by model stage
  std::vector<DeviceMemory> devices;  // by device
};

// Why the sizes cannot stand together, in words that name Megatron's sizes; empty when they can.
std::string fault_of(const Transformer& model, const LayerContext& context,
                     const ParameterState& state);

// The state of devices that hold the placement's stages, each as often as there are directions.
ParameterState state_on(const Placement& placement, ParameterState state);

// Requires both faults (here and fault_of(model, context)) to be empty, and the layout to have as
// many stages as the placement. Full recompute is the schedule's doing: `stages` says what F keeps
// with it and without.
MemoryEstimate estimate_memory(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& placement,
                               const ParameterState& state);

// Weights, gradients and optimizer states of every parameter once: no layout holds less on all its
// GPUs together.
Bytes least_state(const Transformer& model, const LayerContext& context,
                  const ParameterState& state);

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

// The first single change after which `peak` is within `capacity`; empty when none is. Changes are
// tried in the order of their cost in time. First distributed optimizer, selective recompute, micro
// batch 1 (the microbatches grow in number), full recompute. Then twice the tensor ranks
// (data-parallel ranks halved where even), twice the pipeline devices (likewise), sharded weights
// and gradients. `peak` is nothing where a setting is not possible.
using PeakOf = std::function<std::optional<Bytes>(const MemorySetting&)>;
std::optional<MemoryChange> nearest_change(const MemorySetting& now, Bytes capacity,
                                           const PeakOf& peak);

}  // namespace pipesim
