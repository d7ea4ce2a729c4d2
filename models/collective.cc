#include "models/collective.h"

#include <algorithm>
#include <cmath>

namespace pipesim {
namespace {

double times_round(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

// Bytes that a rank sends when `of` ranks share them and `to` of them are reached.
Bytes sent(CollectiveKind kind, Bytes bytes, double to, int of) {
  if (kind == CollectiveKind::kSendReceive) return bytes;
  return times_round(kind) * to / of * bytes;
}

Seconds latency(const CollectiveCurve& curve, int ranks) {
  return curve.base + (ranks - 1) * curve.per_rank;
}

Seconds transfer(const CollectiveCurve& curve, CollectiveKind kind, Bytes bytes, int reached,
                 int of) {
  const Bytes wire = sent(kind, bytes, reached + curve.own_share, of);
  const Bytes ramp(std::sqrt(wire.value() * curve.ramp.value()));
  return (wire + ramp) / curve.bandwidth;
}

// A pair exchanges what an all-to-all of two exchanges, unless messages have a curve of their own.
const CollectiveCurve& curve_of(const Interconnect& interconnect, CollectiveKind kind) {
  const bool pair = kind == CollectiveKind::kSendReceive;
  return interconnect.curves[static_cast<size_t>(pair ? CollectiveKind::kAllToAll : kind)];
}

// Share of a ring's bandwidth that trees between nodes keep (NCCL's tuning.cc: 0.5 to 0.9 by size).
constexpr double kTreeShare = 0.5;

// Messages between nodes that follow each other: a ring, there and back, or one.
double hops(CollectiveKind kind, int nodes) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2.0 * (nodes - 1);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return nodes - 1;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSendReceive:
      break;
  }
  return 1;
}

// Bytes that leave the node when each other node gets a token once. Tokens go to `copies` ranks,
// none of them preferred on the nodes within reach.
Bytes sent_once_a_node(const Collective& collective, GroupShape group) {
  const double nodes = static_cast<double>(group.ranks) / group.ranks_per_node;
  const double within = std::max(1.0, collective.reach * nodes);
  const double reached =
      (nodes - 1) * (within / nodes) * (1 - std::pow(1 - 1 / within, collective.copies));
  return reached / collective.copies * collective.bytes;
}

// A GPU's share of its node's NICs.
double card_share(const Interconnect& interconnect) {
  return static_cast<double>(interconnect.nics_per_node) / interconnect.gpus_per_node;
}

// How much longer the way between nodes is for uplinks that carry less than nodes send. A ring goes
// up once from each leaf, whose nodes share its uplinks; of other messages those for nodes below
// another leaf go up.
double congestion(const Interconnect& interconnect, bool ring, double nodes) {
  const double leaf = interconnect.nodes_per_leaf;
  if (interconnect.oversubscription == 1 || nodes <= leaf) return 1;
  const double up = ring ? 1 / leaf : (nodes - leaf) / (nodes - 1);
  return std::max(1.0, interconnect.oversubscription * up);
}

// A step's latency and a NIC's bandwidth by size, as measured or as the cluster has them.
MessageCurve way_between(const Interconnect& interconnect, CollectiveKind kind) {
  return interconnect.between_nodes[static_cast<size_t>(kind)].value_or(
      MessageCurve{interconnect.nic_latency, interconnect.nic_bandwidth, interconnect.nic_ramp});
}

// Seconds of one step.
Seconds across_nodes(const Interconnect& interconnect, const Collective& collective,
                     GroupShape group) {
  const CollectiveKind kind = collective.kind;
  const MessageCurve nic = way_between(interconnect, kind);
  const int local = group.ranks_per_node;
  const CollectiveCurve& curve = curve_of(interconnect, kind);
  const bool ring = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
                    kind == CollectiveKind::kReduceScatter;
  // All ranks of the group in a node carry a part of a ring between nodes; otherwise each its own.
  const double share = card_share(interconnect) * (ring ? local : 1);
  const double reached = group.ranks - (ring ? 1 : local);
  const Bytes crossing = collective.copies > 1 ? sent_once_a_node(collective, group)
                                               : sent(kind, collective.bytes, reached, group.ranks);
  const double nodes_of_group = static_cast<double>(group.ranks) / local;
  const bool pair = kind == CollectiveKind::kSendReceive;
  const Bytes ramp(std::sqrt(crossing.value() * nic.ramp.value()));
  const Seconds between = congestion(interconnect, ring || pair, nodes_of_group) *
                          ((crossing + ramp) / (share * nic.bandwidth));
  Seconds within;
  Seconds start;
  if (local > 1 && kind != CollectiveKind::kSendReceive) {
    const int near = ring ? group.ranks - 1 : local - 1;
    within = transfer(curve, kind, collective.bytes, near, group.ranks) /
             (ring ? interconnect.sustained : 1);
    start = latency(curve, local);
  }
  const int nodes = (group.ranks + local - 1) / local;
  const Seconds moved = std::max(within, between);
  const Seconds around = hops(kind, nodes) * nic.latency + moved;
  if (kind != CollectiveKind::kAllReduce) return start + around;
  const double levels = 2 * std::ceil(std::log2(nodes));
  return start + std::min(around, levels * nic.latency + moved / kTreeShare);
}

Seconds step_seconds(const Interconnect& interconnect, const Collective& collective,
                     GroupShape group) {
  if (group.ranks < 2) return {};
  if (group.ranks > group.ranks_per_node) return across_nodes(interconnect, collective, group);
  if (collective.kind == CollectiveKind::kSendReceive && interconnect.messages) {
    return message_seconds(*interconnect.messages, collective.bytes);
  }
  const bool exchanges = collective.kind == CollectiveKind::kAllToAll ||
                         collective.kind == CollectiveKind::kSendReceive;
  const double kept = exchanges ? 1 : interconnect.sustained;
  const auto of = [&](const CollectiveCurve& curve) {
    const Seconds alone = collective_seconds(curve, collective.kind, collective.bytes, group.ranks);
    const Seconds start = latency(curve, group.ranks);
    return start + (alone - start) / kept;
  };
  const Seconds ring = of(curve_of(interconnect, collective.kind));
  const bool in_switch = collective.kind == CollectiveKind::kAllReduce && interconnect.nvls &&
                         group.ranks >= interconnect.nvls_ranks;
  return in_switch ? std::min(ring, of(*interconnect.nvls)) : ring;
}

}  // namespace

Seconds message_seconds(const MessageCurve& curve, Bytes bytes) {
  const Bytes ramp(std::sqrt(bytes.value() * curve.ramp.value()));
  return curve.latency + (bytes + ramp) / curve.bandwidth;
}

Seconds collective_seconds(const CollectiveCurve& curve, CollectiveKind kind, Bytes bytes,
                           int ranks) {
  if (ranks < 2) return {};
  const bool pair = kind == CollectiveKind::kSendReceive;
  if (!pair) return latency(curve, ranks) + transfer(curve, kind, bytes, ranks - 1, ranks);
  // A message costs as much as an all-to-all of two, half of which each rank keeps.
  return latency(curve, 2) + transfer(curve, CollectiveKind::kAllToAll, 2 * bytes, 1, 2);
}

Seconds collective_seconds(const Interconnect& interconnect, const Collective& collective,
                           GroupShape group) {
  return 1.0 * collective.steps * step_seconds(interconnect, collective, group);
}

}  // namespace pipesim
