#include "sim/case/ranks.h"

#include <algorithm>

namespace pipesim {

int ranks_of_device(const Scenario& scenario) {
  const ParallelSizes& sizes = scenario.parallel;
  return sizes.tensor * sizes.context * sizes.data;
}

int rank_of(const Scenario& scenario, int pipeline, int device) {
  return device * scenario.parallel.pipelines + pipeline;
}

int ranks_on_a_switch(const Scenario& scenario) {
  return std::min({scenario.hardware->host.gpus_per_switch, scenario.cluster->gpus_per_node,
                   ranks_of_device(scenario)});
}

Cluster cluster_of_positions(const Scenario& scenario) {
  Cluster cluster = *scenario.cluster;
  const ParallelSizes& sizes = scenario.parallel;
  const int gpus = cluster.gpus_per_node;
  const int replica = sizes.tensor * sizes.context;
  // Replicas that are not simulated stand between those that are.
  const int device = replica * sizes.data;
  const int positions =
      device <= gpus ? gpus / device * sizes.pipelines : std::min(sizes.pipelines, gpus / replica);
  cluster.gpus_per_node = std::max(1, positions);
  cluster.nics_per_node = std::max(1, cluster.gpus_per_node * cluster.nics_per_node / gpus);
  return cluster;
}

}  // namespace pipesim
