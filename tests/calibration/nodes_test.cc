#include "validate/calibration/nodes.h"

#include <gtest/gtest.h>

namespace pipesim::calibration::nodes_test {
namespace {

Node node(const std::string& name, int gpus = 8) {
  return {name, name + "/1", "Virtual GPU", gpus, ""};
}

TEST(Nodes, CrossAsText) {
  const Node sent{"a", "a/1 2", "NVIDIA H100 80GB HBM3", 8, "no driver:\nversion 1 < 2"};
  const Node come = node_of(to_text(sent));
  EXPECT_EQ(come.name, sent.name);
  EXPECT_EQ(come.machine, sent.machine);
  EXPECT_EQ(come.gpu, sent.gpu);
  EXPECT_EQ(come.gpus, sent.gpus);
  EXPECT_EQ(come.fault, sent.fault);
  EXPECT_EQ(node_of(to_text(node("b"))).fault, "");
}

TEST(Nodes, AreMeasuredTogetherWhereEachHasOneProcessAndTheSameGpus) {
  EXPECT_EQ(why_not_together(std::vector{node("a"), node("b", 4)}), "");
}

TEST(Nodes, OneThatCannotTakePartIsNamedWithItsReason) {
  Node broken = node("b", 0);
  broken.fault = "the CUDA driver reports no device";
  broken.gpu = "";
  EXPECT_EQ(why_not_together(std::vector{node("a"), broken, node("c")}),
            "node b: the CUDA driver reports no device");
}

TEST(Nodes, AMachineWithSeveralProcessesIsRefused) {
  const std::string reason = why_not_together(std::vector{node("a"), node("b"), node("b")});
  EXPECT_TRUE(reason.starts_with("node b has 2 processes; start one per node")) << reason;
}

TEST(Nodes, TwoMachinesOfOneNameAreTwo) {
  Node other = node("a");
  other.machine = "a/2";
  EXPECT_EQ(why_not_together(std::vector{node("a"), other}), "");
}

TEST(Nodes, OfDifferentGpusAreRefused) {
  Node other = node("b");
  other.gpu = "Other GPU";
  EXPECT_EQ(why_not_together(std::vector{node("a"), other}),
            "node a has Virtual GPU, and node b has Other GPU: one kind of GPU is measured at a "
            "time");
}

TEST(Nodes, GroupsBeginWithAllNodesAndDouble) {
  const std::vector<NodeGroup> two = node_groups(std::vector{node("a"), node("b")});
  EXPECT_EQ(two, (std::vector<NodeGroup>{{2, 8}}));
  EXPECT_EQ(two.front().ranks(), 16);
  EXPECT_EQ(node_groups(std::vector(8, node("a"))),
            (std::vector<NodeGroup>{{8, 8}, {2, 8}, {4, 8}}));
}

TEST(Nodes, GroupsHaveTheGpusThatEveryNodeHas) {
  EXPECT_EQ(node_groups(std::vector{node("a"), node("b", 3), node("c")}),
            (std::vector<NodeGroup>{{3, 3}, {2, 3}}));
}

}  // namespace
}  // namespace pipesim::calibration::nodes_test
