// How long a collective takes within a node and across nodes.
//
// Within a node: seconds = base + per_rank (n - 1) + (w + sqrt(w ramp)) / bandwidth. Each rank
// sends w bytes in a ring, its own part counted at `own_share`. The constants are fitted to
// measured curves by validate/calibration and stand in models/catalog/gpus.yaml. Across nodes the
// transfer takes the longer of the ways within and between nodes, and latencies add.
// docs/reference/model.md ("Hardware") states the formulas. Nothing allocates or throws.
#pragma once

#include <array>
#include <optional>

#include "models/work.h"
#include "sim/core/units.h"

namespace pipesim {

struct CollectiveCurve {
  Seconds base = {};
  Seconds per_rank = {};
  BytesPerSecond bandwidth{1};
  Bytes ramp = {};       // half of the bandwidth is reached at this many bytes
  double own_share = 0;  // of the bytes that a rank keeps for itself, still copied
};

// A message to a neighbour, while as long a one comes from the other:
// seconds = latency + (bytes + sqrt(bytes ramp)) / bandwidth.
struct MessageCurve {
  Seconds latency = {};
  BytesPerSecond bandwidth{1};
  Bytes ramp = {};
};
Seconds message_seconds(const MessageCurve& curve, Bytes bytes);

// Share of a GPU's multiprocessors that a collective takes from compute beside it, unless measured:
// 20 of 132 (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
inline constexpr double kExchangeShare = 20.0 / 132.0;

struct Interconnect {
  int gpus_per_node = 1;
  int nics_per_node = 1;
  BytesPerSecond nic_bandwidth{1};  // achieved by a NIC, each way
  Seconds nic_latency;              // of a message between nodes, software included
  Bytes nic_ramp;                   // between nodes half of the bandwidth is reached at so many
  // In a fat tree: the traffic of nodes below a switch over its uplinks' bandwidth; 1: full
  // bisection.
  double oversubscription = 1;
  int nodes_per_leaf = 1;                 // nodes that reach each other below the lowest switches
  std::array<CollectiveCurve, 4> curves;  // by CollectiveKind, without kSendReceive
  // All-reduce in the switch (NVLS) in groups of at least `nvls_ranks` within a node.
  std::optional<CollectiveCurve> nvls;
  int nvls_ranks = 0;
  // Share of a node's bandwidth that collectives keep in training, beside kernels.
  double sustained = 1;
  // Messages within a node; unmeasured, a pair takes as long as an all-to-all of two.
  std::optional<MessageCurve> messages;
  // Steps between nodes, at a NIC's bandwidth, by CollectiveKind; where one was not measured, the
  // NIC's numbers above.
  std::array<std::optional<MessageCurve>, 5> between_nodes = {};
  double exchange_share = kExchangeShare;  // that collectives take from compute beside them
};

// How many ranks take part, and how many of them share a node (a divisor of `ranks`, or all).
struct GroupShape {
  int ranks = 1;
  int ranks_per_node = 1;
};

// 0 for a group of one. Every group of the layout runs at the same time, so that each rank has its
// share of the node's NICs. For kSendReceive every rank sends `bytes` to its neighbour. Counts all
// its steps.
Seconds collective_seconds(const Interconnect& interconnect, const Collective& collective,
                           GroupShape group);

// The same within one node of `ranks`, by one curve; fits compare it with measurements.
Seconds collective_seconds(const CollectiveCurve& curve, CollectiveKind kind, Bytes bytes,
                           int ranks);

}  // namespace pipesim
