// What a GPU holds, by category, and what a microbatch keeps on a stage of it: the values of
// models/memory.h.
#pragma once

#include "sim/core/units.h"

namespace pipesim {

// How gradients and the optimizer's state are held.
struct ParameterState {
  int data = 1;                        // data-parallel ranks
  bool gradients_in_fp32 = true;       // accumulate_allreduce_grads_in_fp32
  bool distributed_optimizer = false;  // use_distributed_optimizer
};

// What a process takes from a GPU before anything of the model: CUDA's context and kernels.
// Published: 0.95 GiB (vllm-project/compressed-tensors, pull request 587) and 1.06 GB (nccl issue
// 1685). No part of what PyTorch reports as allocated; NCCL is in the margin of
// models/catalog/software.yaml.
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
  // What it holds from R on: checkpoints, and one layer at a time made again from its own
  // (Megatron-LM's uniform recomputation of one layer).
  Bytes recomputed;

  // From F, or with R, until B.
  [[nodiscard]] Bytes until_backward(bool again) const { return again ? recomputed : activation; }
};

}  // namespace pipesim
