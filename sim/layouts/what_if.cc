#include "sim/layouts/what_if.h"

#include <cmath>
#include <fmt/format.h>

namespace pipesim {
namespace {

struct Changeable {
  const char* name;
  // False where the question has no such number.
  bool (*change)(PlanQuestion& question, double factor);
};

bool change_memory(PlanQuestion& question, double factor) {
  auto& capacity = question.base.modelled->capacity;
  capacity = factor * *capacity;
  return true;
}

// Of messages and of collectives.
bool change_network(PlanQuestion& question, double factor) {
  Hardware& hardware = *question.base.hardware;
  hardware.cluster.nic_bandwidth = factor * hardware.cluster.nic_bandwidth;
  hardware.interconnect.nic_bandwidth = factor * hardware.interconnect.nic_bandwidth;
  if (auto& messages = hardware.interconnect.messages_between_nodes) {
    messages->bandwidth = factor * messages->bandwidth;
  }
  question.base.cluster = hardware.cluster;
  return true;
}

bool change_node(PlanQuestion& question, double factor) {
  Hardware& hardware = *question.base.hardware;
  hardware.cluster.link_bandwidth = factor * hardware.cluster.link_bandwidth;
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = factor * curve.bandwidth;
  }
  if (auto& nvls = hardware.interconnect.nvls) nvls->bandwidth = factor * nvls->bandwidth;
  if (auto& messages = hardware.interconnect.messages) {
    messages->bandwidth = factor * messages->bandwidth;
  }
  question.base.cluster = hardware.cluster;
  return true;
}

bool change_gpus(PlanQuestion& question, double factor) {
  const double gpus = factor * question.gpus;
  const int node = question.base.hardware->cluster.gpus_per_node;
  constexpr double kMost = 1 << 20;
  if (gpus < 1 || gpus > kMost || gpus != std::round(gpus)) return false;
  const int whole = static_cast<int>(gpus);
  if (whole > node && whole % node != 0) return false;
  question.gpus = whole;
  return true;
}

constexpr std::array kQuantities{Changeable{"memory of a GPU", change_memory},
                                 Changeable{"bandwidth between nodes", change_network},
                                 Changeable{"bandwidth within a node", change_node},
                                 Changeable{"GPUs", change_gpus}};

}  // namespace

std::string PlanWhatIf::change() const { return fmt::format("{} x {}", quantity, factor); }

std::vector<PlanWhatIf> plan_what_ifs(const PlanQuestion& question, PlanOptions options,
                                      std::span<const double> factors) {
  options.best = 1;
  std::vector<PlanWhatIf> all;
  for (const Changeable& quantity : kQuantities) {
    for (const double factor : factors) {
      if (options.stop && options.stop()) return all;
      PlanQuestion changed = question;
      if (!quantity.change(changed, factor)) continue;
      PlanResult found = plan(changed, options);
      if (found.stopped) return all;  // what it has may not be the fastest
      all.push_back({quantity.name, factor, std::move(changed), std::move(found.best)});
    }
  }
  return all;
}

}  // namespace pipesim
