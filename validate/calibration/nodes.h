// The nodes of a calibration started as one process on each of several: each process's report of
// its own, the check that they can be measured together, and their groups.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pipesim::calibration {

struct Node {
  std::string name;     // for people
  std::string machine;  // another for every machine, and for nothing else
  std::string gpu;      // as the driver names it
  int gpus = 0;
  std::string fault;  // why it cannot take part; empty when it can
};

[[nodiscard]] std::string to_text(const Node& node);
[[nodiscard]] Node node_of(const std::string& text);

// Why these nodes cannot be measured together, which is what one of them lacks, a second process
// on one machine, or another kind of GPU; empty when they can.
[[nodiscard]] std::string why_not_together(std::span<const Node> nodes);

// The first `gpus` GPUs of each of the first `nodes` nodes. Ranks count through one node's GPUs,
// then through the next one's.
struct NodeGroup {
  int nodes = 2;
  int gpus = 1;
  [[nodiscard]] int ranks() const { return nodes * gpus; }
  bool operator==(const NodeGroup&) const = default;
};

// All nodes, then 2, 4, 8 and so on, each with all GPUs that every node has. The largest group
// comes first, since a mode's time may not reach others.
[[nodiscard]] std::vector<NodeGroup> node_groups(std::span<const Node> nodes);

}  // namespace pipesim::calibration
