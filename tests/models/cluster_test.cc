#include "models/cluster.h"

#include <gtest/gtest.h>
#include <set>

namespace pipesim::cluster_test {
namespace {

Cluster cluster_of(int gpus, int nics) {
  Cluster cluster;
  cluster.gpus_per_node = gpus;
  cluster.nics_per_node = nics;
  cluster.link_bandwidth = BytesPerSecond(400);
  cluster.link_latency = Seconds(1);
  cluster.nic_bandwidth = BytesPerSecond(50);
  cluster.nic_latency = Seconds(3);
  return cluster;
}

std::set<int> shared(const Route& a, const Route& b) {
  std::set<int> both;
  for (const int resource : a.resources) {
    for (const int other : b.resources) {
      if (resource == other) both.insert(resource);
    }
  }
  return both;
}

TEST(Route, StaysOnTheSwitchWithinANode) {
  const Route way = route(cluster_of(8, 4), 8, 15);
  EXPECT_EQ(way.bandwidth, BytesPerSecond(400));
  EXPECT_EQ(way.latency, Seconds(1));
  EXPECT_EQ(way.resources.size(), 2U);
}

TEST(Route, LeavesThroughTheNetworkCardsBetweenNodes) {
  const Route way = route(cluster_of(8, 4), 7, 8);
  EXPECT_EQ(way.bandwidth, BytesPerSecond(50));
  EXPECT_EQ(way.latency, Seconds(3));
  EXPECT_EQ(way.resources.size(), 2U);
}

TEST(Route, SharesACardAmongTheGpusThatUseIt) {
  const Cluster cluster = cluster_of(8, 4);
  EXPECT_EQ(shared(route(cluster, 0, 8), route(cluster, 1, 10)).size(), 1U)
      << "0 and 1 leave by one";
  EXPECT_TRUE(shared(route(cluster, 1, 8), route(cluster, 2, 10)).empty());
  EXPECT_EQ(shared(route(cluster, 0, 8), route(cluster, 2, 9)).size(), 1U)
      << "8 and 9 receive by one";
  const Cluster one_card = cluster_of(8, 1);
  EXPECT_EQ(shared(route(one_card, 0, 8), route(one_card, 7, 17)).size(), 1U);
}

TEST(Route, GivesEachGpuACardOfItsOwnWhereThereAreEnough) {
  const Cluster cluster = cluster_of(4, 4);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      EXPECT_TRUE(shared(route(cluster, a, 4 + a), route(cluster, b, 4 + b)).empty());
    }
  }
}

TEST(Route, KeepsTheTwoDirectionsApart) {
  const Cluster cluster = cluster_of(4, 2);
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{0, 4}, std::pair{3, 9}}) {
    EXPECT_TRUE(shared(route(cluster, a, b), route(cluster, b, a)).empty()) << a << " " << b;
  }
}

TEST(Route, NumbersThePortsOfDifferentGpusDifferently) {
  const Cluster cluster = cluster_of(4, 2);
  std::set<int> out;
  for (int gpu = 0; gpu < 12; ++gpu) {
    const int other = gpu / 4 * 4 + (gpu + 1) % 4;
    for (const int port : route(cluster, gpu, other).resources) out.insert(port);
    EXPECT_TRUE(shared(route(cluster, gpu, other), route(cluster, gpu, (gpu + 4) % 12)).empty())
        << "ports and cards are different things";
  }
  EXPECT_EQ(out.size(), 24U) << "12 ports up and 12 down";
}

TEST(MessageSeconds, AreLatencyAndBytesOverBandwidth) {
  const Cluster cluster = cluster_of(8, 4);
  EXPECT_EQ(message_seconds(cluster, 0, 1, Bytes(800)), Seconds(1 + 2));
  EXPECT_EQ(message_seconds(cluster, 0, 8, Bytes(800)), Seconds(3 + 16));
  EXPECT_EQ(message_seconds(cluster, 0, 8, Bytes(0)), Seconds(3));
}

}  // namespace
}  // namespace pipesim::cluster_test
