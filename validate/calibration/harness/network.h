// NCCL between nodes, measured by one process on each: rank 0's leads and has the clock, the others
// do as it says. Only where NCCL is (PIPESIM_NCCL).
//
// Every process says first what its node is (gather_nodes, follow). Rank 0 then either dismisses
// the others or measures with them, and dismisses them after it. The others make a communicator and
// as many launches of a collective as rank 0 has told them ahead; they stand ready when rank 0
// launches its own, so that what it times is the collective. A process that fails leaves others
// waiting on their GPUs for ever: whoever catches an error must end all (Mpi::abort). Errors of
// another process arrive as NetworkError. Points have the group `network` and the parameters
// `ranks`, `nodes` and `size`.
#pragma once

#ifdef PIPESIM_NCCL

#include <span>
#include <stdexcept>
#include <vector>

#include "sim/mpi/mpi.h"
#include "validate/calibration/harness/session.h"
#include "validate/calibration/nodes.h"

namespace pipesim::calibration {

class NetworkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// This process as a node; with its fault where it has no usable GPU.
[[nodiscard]] Node this_node();

// Rank 0: `own` and what the others say of theirs, by rank.
[[nodiscard]] std::vector<Node> gather_nodes(const Mpi& mpi, Node own);
// Rank 0: measures in all groups of the nodes for as long as the plan gives the network, then
// dismisses the others.
void measure_network(Session& session, const Mpi& mpi, std::span<const Node> nodes);
// Rank 0: the others return from `follow`.
void dismiss(const Mpi& mpi);

// Every other rank, until it is dismissed.
void follow(const Mpi& mpi, int rank, const Node& own);

// When points between nodes begin no more, after the start of the plan.
[[nodiscard]] double network_time_s(const Plan& plan);

}  // namespace pipesim::calibration

#endif
