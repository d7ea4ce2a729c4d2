// Seconds of one layer's passes on one GPU, kernel by kernel: models/layer_work.h's work timed by
// models/gpu.h and models/collective.h.
//
// A pass takes the sum of its kernels, launches included, and of its exposed communication. Where
// the host's time to launch them is longer, it takes that (docs/reference/model.md, "Seconds").
// Hidden communication is, as in Megatron-LM:
// - in W, the tensor ranks' gathers of inputs, behind B's matmuls (Korthikanti 2023,
//   section 4.2.2);
// - in B, the reductions of input gradients, behind W's matmuls, where B and W are one pass;
// - with Overlap::tensor (tp_comm_overlap), in F and B, all but one of t parts of the tensor ranks'
//   gathers and scatters, behind the pass's matmuls. Collective and matmul are cut into a part per
//   rank and run a part apart, as far as the matmuls last;
// - in F and B, the messages of context ranks around a ring, behind the parts of attention (`p2p`);
// A collective behind a matmul takes Interconnect::exchange_share of the GPU from it, so that only
// the rest of its time is gained. All else is exposed. Pure functions in fixed room: nothing
// allocates, nothing throws but a LogicError for a precision that the GPU has not. O(kernels).
#pragma once

#include <algorithm>
#include <optional>

#include "models/device_memory.h"
#include "models/hardware.h"
#include "models/layer_context.h"
#include "models/pair.h"
#include "models/software.h"
#include "models/transformer.h"
#include "models/work.h"
#include "sim/core/units.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// Communication that frameworks can hide; all off by default, as in Megatron-LM.
struct Overlap {
  bool tensor = false;            // tp_comm_overlap; only with sequence parallelism
  bool gradient_reduce = false;   // overlap_grad_reduce
  bool parameter_gather = false;  // overlap_param_gather; only with a distributed optimizer
};

// Corrections of measured steps to the model of a machine and its software (sim/anchor).
struct CostFactors {
  double compute = 1;    // on the seconds of all kernels, the optimizer's too
  double reduction = 1;  // on those of gradients and parameters over the data ranks, hidden or not
  Seconds fixed = {};    // of every step beside what is modelled
};

struct CostSetting {
  LayerContext context;
  ParameterState state;
  Overlap overlap;
  bool fused_backward = false;  // B and W run as one pass
  PairOptions pair = {};        // of blocks; the share of the exchange is the hardware's
  Software software = {};
  CostFactors factors = {};
};

// The setting of one kind of layer (LayerContext::window_exchange).
CostSetting setting_of(LayerKind kind, const Transformer& model, const CostSetting& setting);

struct PassCost {
  Seconds matmul;  // these three without their launches
  Seconds attention;
  Seconds memory_bound;
  Seconds launches;
  Seconds tensor;  // collectives, hidden or not
  Seconds context;
  Seconds expert;
  Seconds hidden;  // the part of all collectives that costs no time
  Seconds host;    // that the host takes to launch all of it, beside the GPU

  [[nodiscard]] Seconds compute() const { return matmul + attention + memory_bound + launches; }
  [[nodiscard]] Seconds collectives() const { return tensor + context + expert; }
  [[nodiscard]] Seconds on_gpu() const { return compute() + collectives() - hidden; }
  [[nodiscard]] Seconds total() const { return std::max(on_gpu(), host); }
  // That a collective of no layer may run behind: kernels, or what the host lets the GPU wait.
  [[nodiscard]] Seconds cover() const { return std::max(compute(), host); }
  PassCost& operator+=(const PassCost& other);
  friend PassCost operator*(double factor, const PassCost& cost);
};

struct LayerCost {
  PassCost forward;
  PassCost backward_input;
  PassCost backward_weight;
  PassCost again;  // R: F, without its last matmul where Software::early_stop has it so
  // B of the layers that are not among those recomputed, where it is another.
  std::optional<PassCost> backward_of_others = {};

  [[nodiscard]] const PassCost& backward_where(bool remade) const {
    return remade || !backward_of_others ? backward_input : *backward_of_others;
  }
};

// Kinds that the model does not have stay 0.
using LayerCosts = EnumArray<LayerKind, LayerCost>;

// How the ranks of a group stand in nodes that ranks fill in the order tensor, context, expert,
// data, pipeline. A group that fills no whole number of nodes counts as spread by its largest
// divisor.
GroupShape group_shape(const CostSetting& setting, int gpus_per_node, Group group);

// One kernel, launch included, at the rate that it keeps in training.
Seconds kernel_seconds(const Matmul& matmul, const CostSetting& setting, const Gpu& gpu);
Seconds kernel_seconds(const Attention& attention, const CostSetting& setting, const Gpu& gpu);
// Seconds of memory-bound kernels beside their launches.
Seconds streaming_seconds(const Work& work, const CostSetting& setting, const Gpu& gpu);

// The work's cost as if nothing else ran, with nothing hidden. Collectives of one rank are none.
PassCost work_cost(const Work& work, const CostSetting& setting, const Hardware& hardware);

// One pass as if nothing else ran. Requires what layer_work requires.
PassCost pass_cost(const Transformer& model, LayerKind kind, PassKind pass,
                   const CostSetting& setting, const Hardware& hardware);

LayerCost layer_cost(const Transformer& model, LayerKind kind, const CostSetting& setting,
                     const Hardware& hardware);
LayerCosts layer_costs(const Transformer& model, const CostSetting& setting,
                       const Hardware& hardware);

}  // namespace pipesim
