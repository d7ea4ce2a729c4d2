// A GPU's bytes by category, and a microbatch's on one of its stages: the values of
// models/memory.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/optimizer_state.h"
#include "sim/core/units.h"

namespace pipesim {

// State that data-parallel ranks divide, in Megatron-FSDP's words: ZeRO's stages 0 to 3. Each
// divides more than the ones before it.
enum class ShardingStrategy : std::uint8_t { kNoShard, kOptim, kOptimGrads, kOptimGradsParams };
inline constexpr std::array<std::string_view, 4> kShardingStrategies{
    "no_shard", "optim", "optim_grads", "optim_grads_params"};
constexpr std::string_view to_text(ShardingStrategy strategy) {
  return kShardingStrategies[static_cast<size_t>(strategy)];
}

// How weights, gradients and the optimizer's state are held (docs/reference/model.md, "Sharding").
struct ParameterState {
  int data = 1;  // data-parallel ranks
  // Devices of the pipeline that hold the same stage (DualPipe: two). Their gradients are summed
  // with those of the data-parallel ranks; their optimizers divide its state.
  int copies = 1;
  bool gradients_in_fp32 = true;       // accumulate_allreduce_grads_in_fp32
  double gradient_copy = 0;            // bytes of 16-bit gradients beside those in fp32
  bool distributed_optimizer = false;  // optim, use_distributed_optimizer
  bool sharded_gradients = false;      // optim_grads; only with distributed_optimizer
  bool sharded_weights = false;        // optim_grads_params; only with sharded_gradients
  // Sharded weights are free after a layer's forward, so that its backward gathers them again.
  bool reshard_after_forward = true;
  // Sharded gradients are reduced every microbatch. Otherwise they are summed whole, and reduced at
  // the end (FSDP2's set_requires_gradient_sync).
  bool reduce_every_microbatch = true;
  // Data-parallel ranks that divide one copy, beside which there are others (hybrid sharding); 0:
  // all.
  int shard_degree = 0;
  double weight_bytes = 2;  // of a parameter, and of its gradient unless in fp32; in fp32 4
  OptimizerState optimizer = {};

  [[nodiscard]] bool in_fp32() const { return weight_bytes == 4; }
  [[nodiscard]] int holders() const { return data * copies; }
  [[nodiscard]] int shards() const { return shard_degree > 0 ? shard_degree : holders(); }
  [[nodiscard]] double gradient_bytes() const { return gradients_in_fp32 ? 4 : weight_bytes; }
  [[nodiscard]] bool reduces_every_microbatch() const {
    return sharded_gradients && reduce_every_microbatch;
  }
};

constexpr void set_sharding(ShardingStrategy strategy, ParameterState& state) {
  state.distributed_optimizer = strategy >= ShardingStrategy::kOptim;
  state.sharded_gradients = strategy >= ShardingStrategy::kOptimGrads;
  state.sharded_weights = strategy >= ShardingStrategy::kOptimGradsParams;
}
constexpr ShardingStrategy strategy_of(const ParameterState& state) {
  if (state.sharded_weights) return ShardingStrategy::kOptimGradsParams;
  if (state.sharded_gradients) return ShardingStrategy::kOptimGrads;
  return state.distributed_optimizer ? ShardingStrategy::kOptim : ShardingStrategy::kNoShard;
}

// A process's bytes on a GPU before those of the model: CUDA's context and kernels. Published: 0.95
// GiB (vllm-project/compressed-tensors, pull request 587) and 1.06 GB (nccl issue 1685). PyTorch
// does not report them as allocated; NCCL is in the margin of models/catalog/software.yaml.
inline constexpr Bytes kFrameworkOverhead = 1.0 * kGiB;

struct DeviceMemory {
  Bytes weights;     // of layers; embedding and output are `vocabulary`
  Bytes gradients;   // likewise
  Bytes optimizer;   // likewise
  Bytes vocabulary;  // weights, gradients and optimizer state of embedding and output
  Bytes buffers;     // messages on their way, and temporaries of the pass that needs most
  Bytes overhead;    // kFrameworkOverhead
  Bytes on_host;     // optimizer states that the host updates; not in total()

  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimizer + vocabulary + buffers + overhead;
  }
};

// Bytes of a microbatch on a stage (LayerMemory summed over its layers).
struct StageMemory {
  Bytes activation;
  Bytes weight_stash;  // may exceed `activation`
  Bytes checkpoint;    // what F keeps where the stage is recomputed: the input of every layer
  // Bytes from R on: checkpoints, and one layer at a time made again from its own (Megatron-LM's
  // uniform recomputation of one layer).
  Bytes recomputed;
  Bytes offloaded = {};  // of its activation: on the host from F to B, not in `activation`

  // From F, or with R, until B.
  [[nodiscard]] Bytes until_backward(bool again) const { return again ? recomputed : activation; }
};

}  // namespace pipesim
