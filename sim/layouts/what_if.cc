#include "sim/layouts/what_if.h"

#include <array>

namespace pipesim {
namespace {

constexpr double kMore = 1.1;

struct Change {
  const char* name;
  void (*make)(PlanQuestion& question);
};

void add_memory(PlanQuestion& question) {
  auto& capacity = question.base.modelled->capacity;
  capacity = kMore * *capacity;
}

// Of messages and of collectives.
void widen_network(PlanQuestion& question) {
  Hardware& hardware = *question.base.hardware;
  hardware.cluster.nic_bandwidth = kMore * hardware.cluster.nic_bandwidth;
  hardware.interconnect.nic_bandwidth = kMore * hardware.interconnect.nic_bandwidth;
  if (auto& messages = hardware.interconnect.messages_between_nodes) {
    messages->bandwidth = kMore * messages->bandwidth;
  }
  question.base.cluster = hardware.cluster;
}

void widen_node(PlanQuestion& question) {
  Hardware& hardware = *question.base.hardware;
  hardware.cluster.link_bandwidth = kMore * hardware.cluster.link_bandwidth;
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = kMore * curve.bandwidth;
  }
  if (auto& nvls = hardware.interconnect.nvls) nvls->bandwidth = kMore * nvls->bandwidth;
  if (auto& messages = hardware.interconnect.messages) {
    messages->bandwidth = kMore * messages->bandwidth;
  }
  question.base.cluster = hardware.cluster;
}

void double_gpus(PlanQuestion& question) { question.gpus *= 2; }

constexpr std::array kChanges{Change{"memory of a GPU x 1.1", add_memory},
                              Change{"bandwidth between nodes x 1.1", widen_network},
                              Change{"bandwidth within a node x 1.1", widen_node},
                              Change{"GPUs x 2, the same batch", double_gpus}};

}  // namespace

std::vector<PlanWhatIf> plan_what_ifs(const PlanQuestion& question, PlanOptions options) {
  options.best = 1;
  std::vector<PlanWhatIf> all;
  for (const Change& change : kChanges) {
    if (options.stop && options.stop()) break;
    PlanQuestion changed = question;
    change.make(changed);
    all.push_back({change.name, changed.gpus, plan(changed, options).best});
  }
  return all;
}

}  // namespace pipesim
