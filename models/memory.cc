#include "models/memory.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/alike.h"
#include "models/memory_model.h"

namespace pipesim {
namespace {

std::string fault_of_shards(const Transformer& model, const LayerContext& context,
                            const ParameterState& state) {
  if (state.holders() % state.shards() != 0) {
    return fmt::format("data_parallel_size {} does not divide by data_parallel_shard_degree {}",
                       state.data, state.shards());
  }
  const int shards = context.tensor * context.context * state.shards();
  if (model.experts && shards % (context.expert * context.expert_tensor) != 0) {
    return fmt::format(
        "tensor x context size x data_parallel_shard_degree {} does not divide by "
        "expert_model_parallel_size x expert_tensor_parallel_size {}",
        shards, context.expert * context.expert_tensor);
  }
  return "";
}

}  // namespace

std::string fault_of(const Transformer& model, const LayerContext& context,
                     const ParameterState& state) {
  if (!model.experts && context.expert == 1) return fault_of_shards(model, context, state);
  if (!model.experts) {
    return fmt::format("expert_model_parallel_size is {}, but {} has no experts", context.expert,
                       model.name);
  }
  const int ranks = context.tensor * context.context * state.data;
  if (ranks % (context.expert * context.expert_tensor) == 0) {
    return fault_of_shards(model, context, state);
  }
  return fmt::format(
      "tensor x context x data parallel size {} does not divide by expert_model_parallel_size x "
      "expert_tensor_parallel_size {}",
      ranks, context.expert * context.expert_tensor);
}

ParameterState state_on(const Placement& placement, ParameterState state) {
  state.copies = placement.directions();
  return state;
}

MemoryEstimate estimate_memory(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& placement,
                               const ParameterState& state) {
  const MemoryModel memory(model, context, state_on(placement, state));
  MemoryEstimate result;
  const std::vector<int> alike = first_alike(model, layout);
  for (size_t stage = 0; stage < alike.size(); ++stage) {
    const size_t first = alike[stage];
    result.stages.push_back(first < stage ? result.stages[first]
                                          : memory.stage(layout.stages[stage]));
  }
  const std::vector<int> alike_devices = first_alike_devices(model, layout, placement);
  for (int device = 0; device < placement.devices(); ++device) {
    const int first = alike_devices[device];
    result.devices.push_back(first < device ? result.devices[first]
                                            : memory.device(stages_of(layout, placement, device)));
  }
  return result;
}

std::optional<MemoryChange> nearest_change(const MemorySetting& now, Bytes capacity,
                                           const PeakOf& peak) {
  std::optional<MemoryChange> found;
  const auto offer = [&](bool possible, std::string words, auto change) {
    if (found || !possible) return;
    MemorySetting setting = now;
    change(setting);
    const auto bytes = peak(setting);
    if (bytes && *bytes <= capacity) found = MemoryChange{std::move(words), setting, *bytes};
  };
  const auto halve_data = [](MemorySetting& setting) {
    if (setting.state.data % 2 == 0) setting.state.data /= 2;
  };
  const RecomputeGranularity recompute = now.context.recompute;
  offer(!now.state.distributed_optimizer && now.state.data * now.context.context > 1,
        "use_distributed_optimizer",
        [](MemorySetting& setting) { setting.state.distributed_optimizer = true; });
  offer(
      recompute == RecomputeGranularity::kNone, "recompute: selective",
      [](MemorySetting& setting) { setting.context.recompute = RecomputeGranularity::kSelective; });
  offer(now.context.micro_batch_size > 1, "micro_batch_size 1",
        [](MemorySetting& setting) { setting.context.micro_batch_size = 1; });
  const bool all = recompute == RecomputeGranularity::kFull && now.context.recomputed_layers.all();
  offer(!all, "recompute: full", [](MemorySetting& setting) {
    setting.context.recompute = RecomputeGranularity::kFull;
    setting.context.recomputed_layers = {};
  });
  offer(true, fmt::format("tensor_model_parallel_size {}", 2 * now.context.tensor),
        [&](MemorySetting& setting) {
          setting.context.tensor *= 2;
          halve_data(setting);
        });
  offer(true, fmt::format("pipeline_model_parallel_size {}", 2 * now.pipeline),
        [&](MemorySetting& setting) {
          setting.pipeline *= 2;
          halve_data(setting);
        });
  const bool divides = now.state.data * now.context.context > 1;
  offer(divides && !now.state.sharded_weights && now.context.vocabulary_devices == 0,
        "data_parallel_sharding_strategy: optim_grads_params", [](MemorySetting& setting) {
          set_sharding(ShardingStrategy::kOptimGradsParams, setting.state);
        });
  return found;
}

}  // namespace pipesim
