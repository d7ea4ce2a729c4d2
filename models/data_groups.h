// Which data-parallel ranks divide what a parameter takes, and which hold the same part of it.
//
// Ranks that divide are neighbours: data ranks of one copy (ParameterState::shards) and context
// ranks, of experts those that hold the same ones. Their replicas stand as far apart as they are
// many, as in torchtitan's mesh (replicate outside shard) and Megatron-LM's optimizer instances.
#pragma once

#include "models/layer_cost.h"

namespace pipesim {

// Parameters on one GPU whose gradients it reduces, by the ranks that it reduces them with.
struct HeldParameters {
  double dense = 0;
  double expert = 0;
};

struct DataGroups {
  GroupShape shards;    // gather weights and scatter gradients among themselves
  GroupShape replicas;  // then all-reduce their part; one rank where there is one copy
};
DataGroups dense_groups(const CostSetting& setting, int gpus_per_node);
DataGroups expert_groups(const CostSetting& setting, int gpus_per_node);

}  // namespace pipesim
