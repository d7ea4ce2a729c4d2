// The step that closes an iteration on one GPU of a pipeline device (docs/reference/model.md,
// "Seconds"). Its parts are gradients over the data ranks, the gradient norm, the optimizer step,
// and parameters back.
//
// Gradients are reduced when the device's passes have ended, by an all-reduce. Where the optimizer
// is sharded, it is a reduce-scatter, with an all-gather of 16-bit parameters after the step.
// Overlapped (Overlap::gradient_reduce, parameter_gather), each runs behind one microbatch's
// backward, or forward, on the device, except for one bucket. Megatron-LM's bucket is the larger of
// 40 million parameters and a million for every data rank.
//
// Hybrid sharding holds several copies on the data ranks: the ranks that divide one reduce-scatter,
// and then all-reduce their part with its replicas. Where every microbatch has reduced its
// gradients (models/sharding.h), only the replicas' all-reduce is left, overlapped. Sharded weights
// are gathered in passes, or, where they are kept, once, behind the first microbatch's forward.
// Pure functions; nothing allocates except that single gather.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/data_groups.h"
#include "models/layer_cost.h"
#include "models/layout.h"
#include "sim/core/enum_array.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

// Each is booked once and under its name. Code that divides a step switches over all of them: a new
// one does not compile until it has a place everywhere.
enum class ClosingTerm : std::uint8_t {
  kReduce,     // of gradients; the tied embedding's between the ends included
  kNorm,       // one number over all ranks that hold a part of the model
  kOptimizer,  // the host's part too
  kFixed,      // CostFactors::fixed: what a step takes beside what is modelled
  kGather,     // of parameters
};
inline constexpr std::array<std::string_view, 5> kClosingTermNames{"reduce", "norm", "optimizer",
                                                                   "fixed", "gather"};
template <>
inline constexpr std::size_t kSizeOf<ClosingTerm> = kClosingTermNames.size();

struct StepCost {
  EnumArray<ClosingTerm, Seconds> terms{};  // hidden or not
  Seconds host;                             // of the optimizer: states on the host, and copies
  Seconds hidden;                           // of reduce and gather, behind passes

  [[nodiscard]] Seconds operator[](ClosingTerm term) const { return terms[term]; }
  [[nodiscard]] Seconds total() const;
  // Before the norm that joins all devices; what overlaps the passes is taken from it first.
  [[nodiscard]] Seconds gradients() const {
    return std::max(Seconds(0), terms[ClosingTerm::kReduce] - hidden);
  }
  // All that is left for after the norm.
  [[nodiscard]] Seconds after_norm() const {
    return total() - gradients() - terms[ClosingTerm::kNorm];
  }
};

// Parameters that train on a device with these stages; a tied matrix on every device that uses it.
// O(stages).
HeldParameters held_parameters(const Transformer& model, const LayerContext& context,
                               std::span<const StageLayers> stages);
HeldParameters held_parameters(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& place, int device);

// Bytes that a step moves per parameter whose optimizer state this GPU holds. Adam reads and writes
// its state (24 in fp32), reads the gradient (4) and writes the weight (2). It also reads the
// weight where the fp32 copy is a remainder, or there is none. The norm reads gradients (4),
// clipping reads and writes them (8). 16-bit gradients are first made fp32 (6), or read directly.
// Emptying the gradients writes each once, sharded or not.
struct StepBytes {
  double update = 0;     // by whoever holds the state
  double gradients = 0;  // by the GPU
};
StepBytes step_bytes(const ParameterState& state);
// Parameters that one kernel of a step takes: 320 blocks of 65536 (NVIDIA Apex,
// multi_tensor_apply).
inline constexpr double kLaunchElements = 320.0 * 65536;

// On the GPU.
Seconds optimizer_seconds(const CostSetting& setting, const HeldParameters& held,
                          const Hardware& hardware);
// Seconds of the parameters whose state is on the host. Gradients go there, its CPUs update,
// weights come back, one after the other or the three at once. All GPUs of a node do so at a time,
// over their share of a switch's link and of the CPUs' bandwidth.
Seconds host_optimizer_seconds(const CostSetting& setting, const HeldParameters& held,
                               const Hardware& hardware);

// Requires what layer_costs requires, and a layout that fits the placement. Devices of the same
// kinds of layers (same_kinds) close alike. O(chunks).
StepCost step_cost(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
                   const Layout& layout, const Placement& place, const LayerCosts& costs,
                   int device);

}  // namespace pipesim
