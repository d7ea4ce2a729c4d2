#include "models/collective.h"

#include <gtest/gtest.h>

namespace pipesim::collective_test {
namespace {

constexpr CollectiveKind kAll[]{CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                CollectiveKind::kSendReceive};

Interconnect some_interconnect() {
  Interconnect some;
  some.gpus_per_node = 8;
  some.nics_per_node = 4;
  some.nic_bandwidth = BytesPerSecond(25e9);
  some.nic_latency = Seconds(10e-6);
  for (CollectiveCurve& curve : some.curves) {
    curve = {.base = Seconds(5e-6),
             .per_rank = Seconds(1e-6),
             .bandwidth = BytesPerSecond(200e9),
             .ramp = Bytes(0),
             .own_share = 0};
  }
  return some;
}

Seconds seconds(const Interconnect& on, CollectiveKind kind, double bytes, GroupShape group) {
  return collective_seconds(on, {.kind = kind, .bytes = Bytes(bytes)}, group);
}

TEST(Collectives, CostNothingAlone) {
  for (const CollectiveKind kind : kAll) {
    EXPECT_EQ(seconds(some_interconnect(), kind, 1e9, {1, 1}), Seconds(0));
  }
}

TEST(Collectives, MoveWhatARingMovesWithinANode) {
  const Interconnect some = some_interconnect();
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllGather, 4e9, {4, 4}).value(), 8e-6 + 3e9 / 200e9,
              1e-12);
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllReduce, 4e9, {4, 4}).value(), 8e-6 + 6e9 / 200e9,
              1e-12);
  EXPECT_NEAR(seconds(some, CollectiveKind::kSendReceive, 4e9, {8, 8}).value(), 6e-6 + 4e9 / 200e9,
              1e-12);
}

TEST(Collectives, ReachHalfTheBandwidthAtTheRamp) {
  Interconnect some = some_interconnect();
  some.curves[1].ramp = Bytes(1e6);
  some.curves[1].base = {};
  some.curves[1].per_rank = {};
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllGather, 2e6, {2, 2}).value(), 2 * 1e6 / 200e9,
              1e-15);
}

TEST(Collectives, ShareTheCardsOfANode) {
  const Interconnect some = some_interconnect();
  // Two full nodes: 4 cards carry the ring, 15/16 of the bytes.
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllGather, 16e9, {16, 8}).value(),
              12e-6 + 10e-6 + 15e9 / 100e9, 1e-9);
  // One rank per node: half a card each, and no way within a node.
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllReduce, 4e9, {4, 1}).value(),
              6 * 10e-6 + 6e9 / 12.5e9, 1e-9);
  // All-to-all: what goes to the other node, through each rank's half card.
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllToAll, 16e9, {16, 8}).value(),
              12e-6 + 10e-6 + 8e9 / 12.5e9, 1e-9);
  EXPECT_NEAR(seconds(some, CollectiveKind::kSendReceive, 1e9, {4, 1}).value(),
              10e-6 + 1e9 / 12.5e9, 1e-9);
}

// Few bytes go along trees, many around the ring, which passes every node twice.
TEST(Collectives, ReduceBetweenNodesAlongTreesWhereThatIsFaster) {
  const Interconnect some = some_interconnect();
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllReduce, 4, {64, 1}).value(), 12 * 10e-6, 1e-7);
  EXPECT_NEAR(seconds(some, CollectiveKind::kAllReduce, 8e9, {64, 1}).value(),
              126 * 10e-6 + 2 * 63.0 / 64 * 8e9 / 12.5e9, 1e-7);
}

TEST(Collectives, ReachHalfOfTheBandwidthBetweenNodesAtTheirRamp) {
  Interconnect ramped = some_interconnect();
  ramped.nic_ramp = Bytes(1e8);
  const auto moved = [&](const Interconnect& wires) {
    return seconds(wires, CollectiveKind::kSendReceive, 1e8, {4, 1}).value() - 10e-6;
  };
  EXPECT_NEAR(moved(ramped), 2 * moved(some_interconnect()), 1e-9);
}

TEST(Collectives, ReduceInTheSwitchWhereThatIsFaster) {
  Interconnect some = some_interconnect();
  const Seconds ring = seconds(some, CollectiveKind::kAllReduce, 1e9, {8, 8});
  some.nvls = CollectiveCurve{.base = Seconds(1e-5), .bandwidth = BytesPerSecond(400e9)};
  some.nvls_ranks = 8;
  EXPECT_LT(seconds(some, CollectiveKind::kAllReduce, 1e9, {8, 8}), ring);
  EXPECT_EQ(seconds(some, CollectiveKind::kAllReduce, 1e9, {4, 4}),
            seconds(some_interconnect(), CollectiveKind::kAllReduce, 1e9, {4, 4}));
}

TEST(Collectives, AreNeverFasterForMoreBytesOrMoreNodes) {
  const Interconnect some = some_interconnect();
  for (const CollectiveKind kind : kAll) {
    for (double bytes = 1024; bytes < 1e9; bytes *= 2) {
      for (const GroupShape group : {GroupShape{8, 8}, GroupShape{16, 8}, GroupShape{8, 1}}) {
        EXPECT_LE(seconds(some, kind, bytes, group), seconds(some, kind, 2 * bytes, group));
      }
      EXPECT_LE(seconds(some, kind, bytes, {16, 8}), seconds(some, kind, bytes, {32, 8}));
      EXPECT_LE(seconds(some, kind, bytes, {8, 8}), seconds(some, kind, bytes, {16, 8}));
    }
  }
}

}  // namespace
}  // namespace pipesim::collective_test
