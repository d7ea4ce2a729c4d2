// Seconds that sharded weights and gradients add to passes. Weights are all-gathered and gradients
// reduce-scattered over the data ranks, a layer at a time, on a stream of their own.
//
// For layers 1..n of a stage, C is the compute of a layer's pass, G its weights' gather, S its
// gradients' scatter. A collective takes the share x of the GPU from compute beside it
// (Interconnect::exchange_share). While a layer is computed the next one's weights are gathered,
// and in backward the gradients of the one before are scattered. The exposed part of a collective c
// behind compute C is
//
//     e(c, C) = max(x c, c - C)
//
// since compute runs at 1 - x of its rate until c has ended. So a pass takes more by
//
//     F       G_1 + sum_i e(G_(i+1), C_i)
//     B       G_n + sum_i e(G_(i-1), C_i)                   where forward has freed the weights
//     W       sum_i e(S_(i+1), C_i) + S_1                   where every microbatch reduces
//     BW      G_n + sum_i e(G_(i-1) + S_(i+1), C_i) + S_1
//
// The first gather and the last scatter of a pass have nothing to run behind. R runs layer by layer
// within the backward, with the weights that B gathers: its compute counts as B's. Embedding and
// output are layers here; a tied matrix stays gathered where both are on the stage.
//
// A device's share of a vocabulary that all devices of the pipeline divide (vocabulary_share.h) is
// divided over its data ranks too, a matrix a layer. Its passes run alone, so that their
// collectives are wholly exposed. IF and S wait for their matrix, T and IB for the scatter of their
// gradient. T waits for its matrix again where it makes the input's gradient (vocab-2: S).
//
// Sources: FSDP2 gathers one layer ahead and reduces one behind (PyTorch, fully_shard; Zhao 2023,
// "PyTorch FSDP", arXiv 2304.11277, section 3.3), Megatron-FSDP likewise, always overlapped
// (megatron/core/distributed/fsdp). Gradients of replicas are reduced at the end of the iteration
// (models/step_cost.h), as Megatron-FSDP does. Pure functions.
#pragma once

#include "models/data_groups.h"
#include "models/layer_cost.h"
#include "models/layout.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// The gather and scatter of one layer's parameters.
struct LayerSharding {
  HeldParameters parameters;
  Seconds gather;
  Seconds scatter;
};
LayerSharding layer_sharding(const Transformer& model, LayerKind kind, const CostSetting& setting,
                             const Hardware& hardware);
using LayerShardings = EnumArray<LayerKind, LayerSharding>;
// Kinds that the model does not have stay 0.
LayerShardings layer_shardings(const Transformer& model, const CostSetting& setting,
                               const Hardware& hardware);

// True if passes gather weights in each microbatch; otherwise all are gathered once an iteration.
// Weights that are not freed after forward stay on a pipeline's stage for the next microbatch, as
// in torch.distributed.pipelining (set_reshard_after_backward(False)).
bool gathers_every_microbatch(const ParameterState& state, int devices);

// Exposed seconds of a stage's collectives.
struct StageSharding {
  Seconds forward;
  Seconds backward_input;   // of BW what gathers alone would add
  Seconds backward_weight;  // of BW the rest
};

// How a stage's microbatch passes.
struct ShardedRun {
  int devices = 1;          // of the pipeline
  bool recomputed = false;  // R runs before B
  double splits = 1;        // parts of a microbatch, each with passes of its own
};

// Exposed seconds of each microbatch's gathers and scatters. O(layers); allocates.
StageSharding stage_sharding(const Transformer& model, const StageLayers& stage,
                             const LayerCosts& costs, const LayerShardings& shardings,
                             const CostSetting& setting, const Hardware& hardware,
                             const ShardedRun& run);

// Exposed seconds of the passes of a device's share; and its gathers once an iteration, where
// weights are kept.
struct VocabularySharding {
  HeldParameters matrix;  // one of its matrices
  Seconds gather;
  Seconds scatter;
  Seconds input_forward;    // IF
  Seconds input_backward;   // IB
  Seconds output_forward;   // S
  Seconds output_backward;  // T
};
// Requires LayerContext::vocabulary_devices. O(1).
VocabularySharding vocabulary_sharding(const Transformer& model, VocabularyPlacement placement,
                                       const CostSetting& setting, const Hardware& hardware);

// Gathers of all weights of a stage once, behind a microbatch's forward: in all, and what is seen.
struct GatheredOnce {
  Seconds whole;
  Seconds seen;
};
GatheredOnce gather_once(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs, const LayerShardings& shardings,
                         const Hardware& hardware);

}  // namespace pipesim
