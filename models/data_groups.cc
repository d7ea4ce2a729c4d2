#include "models/data_groups.h"

#include <algorithm>

namespace pipesim {
namespace {

// Ranks that stand `stride` apart, as many on a node as divide them.
GroupShape spread(int ranks, int stride, int node) {
  int near = std::clamp(node / stride, 1, ranks);
  while (ranks % near != 0) --near;
  return {ranks, near};
}

// Groups of `holders` ranks of a pipeline's device, and as many of each other device that holds its
// stages. Ranks of two devices are on different nodes.
DataGroups groups(int shards, int holders, int stride, const ParameterState& state, int node) {
  const int replicas = holders * state.copies / shards;
  const int near = spread(std::min(shards, holders), stride, node).ranks_per_node;
  const int apart = std::max(1, replicas / (shards < holders ? state.copies : 1));
  return {{shards, near}, {replicas, spread(apart, stride * shards, node).ranks_per_node}};
}

}  // namespace

DataGroups dense_groups(const CostSetting& setting, int gpus_per_node) {
  const LayerContext& context = setting.context;
  const ParameterState& state = setting.state;
  return groups(state.shards() * context.context, state.data * context.context, context.tensor,
                state, gpus_per_node);
}

DataGroups expert_groups(const CostSetting& setting, int gpus_per_node) {
  const LayerContext& context = setting.context;
  const ParameterState& state = setting.state;
  const int stride = context.expert * context.expert_tensor;
  const auto of = [&](int data) {
    return std::max(1, data * context.context * context.tensor / stride);
  };
  return groups(of(state.shards()), of(state.data), stride, state, gpus_per_node);
}

}  // namespace pipesim
