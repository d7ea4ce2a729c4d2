#include "models/cluster.h"

namespace pipesim {
namespace {

// Numbers of one-way resources: every GPU has two ports, every node two sides of each NIC.
struct Numbering {
  explicit Numbering(const Cluster& of) : cluster(of) {}

  [[nodiscard]] int node(int rank) const { return rank / cluster.gpus_per_node; }
  [[nodiscard]] int per_node() const { return 2 * (cluster.gpus_per_node + cluster.nics_per_node); }
  [[nodiscard]] int port(int rank, bool up) const {
    return node(rank) * per_node() + 2 * (rank % cluster.gpus_per_node) + (up ? 0 : 1);
  }
  [[nodiscard]] int card(int rank, bool up) const {
    const int local = rank % cluster.gpus_per_node * cluster.nics_per_node / cluster.gpus_per_node;
    return node(rank) * per_node() + 2 * (cluster.gpus_per_node + local) + (up ? 0 : 1);
  }

  const Cluster& cluster;
};

}  // namespace

Route route(const Cluster& cluster, int from, int to) {
  const Numbering at(cluster);
  if (at.node(from) == at.node(to)) {
    return {
        {at.port(from, true), at.port(to, false)}, cluster.link_bandwidth, cluster.link_latency};
  }
  return {
      {at.card(from, true), at.card(to, false)}, cluster.nic_bandwidth, cluster.nic_latency, true};
}

Seconds message_seconds(const Cluster& cluster, int from, int to, Bytes size) {
  const Route way = route(cluster, from, to);
  return way.latency + size / way.bandwidth;
}

}  // namespace pipesim
