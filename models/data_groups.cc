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

DataGroups groups(int shards, int replicas, int stride, int node) {
  return {spread(shards, stride, node), spread(replicas, stride * shards, node)};
}

}  // namespace

DataGroups dense_groups(const CostSetting& setting, int gpus_per_node) {
  const LayerContext& context = setting.context;
  const ParameterState& state = setting.state;
  return groups(state.shards() * context.context, state.data / state.shards(), context.tensor,
                gpus_per_node);
}

DataGroups expert_groups(const CostSetting& setting, int gpus_per_node) {
  const LayerContext& context = setting.context;
  const ParameterState& state = setting.state;
  const int stride = context.expert * context.expert_tensor;
  const int shards = state.shards() * context.context * context.tensor / stride;
  return groups(std::max(1, shards), state.data / state.shards(), stride, gpus_per_node);
}

}  // namespace pipesim
