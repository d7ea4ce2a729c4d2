#include "validate/calibration/nodes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>

namespace pipesim::calibration {

std::string to_text(const Node& node) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", node.name, node.machine, node.gpu, node.gpus,
                     node.fault);
}

Node node_of(const std::string& text) {
  std::array<std::string, 5> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < lines.size() && begin <= text.size(); ++i) {
    const bool last = i + 1 == lines.size();  // a fault may have lines of its own
    const std::size_t end = last ? text.size() : std::min(text.find('\n', begin), text.size());
    lines[i] = text.substr(begin, end - begin);
    begin = end + 1;
  }
  Node node{lines[0], lines[1], lines[2], 0, lines[4]};
  std::from_chars(lines[3].data(), lines[3].data() + lines[3].size(), node.gpus);
  return node;
}

std::string why_not_together(std::span<const Node> nodes) {
  std::map<std::string, int> processes;
  for (const Node& node : nodes) {
    if (!node.fault.empty()) return fmt::format("node {}: {}", node.name, node.fault);
    ++processes[node.machine];
  }
  for (const Node& node : nodes) {
    if (const int count = processes[node.machine]; count > 1) {
      return fmt::format(
          "node {} has {} processes; start one per node, which takes all of its GPUs (mpirun "
          "--map-by ppr:1:node --bind-to none, srun --ntasks-per-node=1)",
          node.name, count);
    }
    if (node.gpu != nodes.front().gpu) {
      return fmt::format(
          "node {} has {}, and node {} has {}: one kind of GPU is measured at a time",
          nodes.front().name, nodes.front().gpu, node.name, node.gpu);
    }
  }
  return {};
}

std::vector<NodeGroup> node_groups(std::span<const Node> nodes) {
  const int gpus = std::ranges::min(nodes, {}, &Node::gpus).gpus;
  const auto all = static_cast<int>(nodes.size());
  std::vector<NodeGroup> groups{{all, gpus}};
  for (int count = 2; count < all; count *= 2) groups.push_back({count, gpus});
  return groups;
}

}  // namespace pipesim::calibration
