// Where the devices of pipelines stand in the scenario's cluster.
#pragma once

#include "models/cluster.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Position in the cluster of device `device` of pipeline `pipeline`. The replicas of one pipeline
// position are adjacent, as in Megatron-LM: rank = device * pipelines + pipeline.
int rank_of(const Scenario& scenario, int pipeline, int device);

// GPUs of a device of the pipeline, in all its replicas.
int ranks_of_device(const Scenario& scenario);

// How many ranks of one stage share a switch. They stand next to each other and copy to the host
// alike, at the same time. Requires a cluster by name.
int ranks_on_a_switch(const Scenario& scenario);

// The cluster that pipeline positions see (rank_of), where seconds follow from a model. Each
// position stands for all the GPUs of a device, which all do the same at once. A node has as many
// positions as devices (at least one), and a NIC for each where GPUs have one each.
Cluster cluster_of_positions(const Scenario& scenario);

}  // namespace pipesim
