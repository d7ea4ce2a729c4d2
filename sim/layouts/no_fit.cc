#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "sim/core/text.h"
#include "sim/layouts/report.h"

namespace pipesim {
namespace {

// Rounded up, so that as much is enough.
std::string at_least(Bytes bytes) {
  return fmt::format("{:.2f} GiB", std::ceil(bytes / kGiB * 100) / 100);
}

// The first clusters whose GPUs have so much memory, those with the least first.
std::string roomier(Bytes memory, std::span<const ClusterEntry> clusters) {
  constexpr size_t kNamed = 4;
  std::vector<const Hardware*> enough;
  for (const ClusterEntry& entry : clusters) {
    if (entry.hardware.gpu.memory >= memory) enough.push_back(&entry.hardware);
  }
  if (enough.empty()) return "no cluster of the catalogue has";
  std::ranges::stable_sort(enough, {}, [](const Hardware* each) { return each->gpu.memory; });
  std::string names;
  for (size_t i = 0; i < std::min(enough.size(), kNamed); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", enough[i]->name);
  }
  const size_t more = enough.size() - std::min(enough.size(), kNamed);
  return names + (more == 0 ? "" : fmt::format(" and {} more", more)) + " have";
}

std::string change_text(const PlanQuestion& question, const MemoryChange& change) {
  const MemorySetting& to = change.setting;
  const int gpus = to.context.tensor * to.context.context * to.pipeline * to.state.data;
  return fmt::format("{}{} (then {})", change.words,
                     gpus == question.gpus ? "" : fmt::format(" on {} GPUs", gpus),
                     human(change.peak));
}

std::string miss_text(const PlanQuestion& question, const NearMiss& miss,
                      std::span<const ClusterEntry> clusters) {
  const std::string layout = label_of(miss.planned.point) + ", " + sizes_of(miss.planned.point);
  if (miss.host) {
    return fmt::format(
        "{}; its GPUs have room ({}), but a node's host has {} for {} that wait on it: {} over for "
        "each GPU",
        layout, human(miss.planned.peak), human(question.base.hardware->host.memory),
        human(miss.planned.on_host), human(miss.over));
  }
  std::string text =
      fmt::format("{}; its fullest GPU takes {}, {} over\n  it fits with {} a GPU", layout,
                  human(miss.planned.peak), human(miss.over), at_least(miss.planned.peak));
  if (!clusters.empty()) {
    text += fmt::format(", which {}", roomier(miss.planned.peak, clusters));
  }
  text += "\n  nearest change that makes it fit: ";
  if (miss.change) return text + change_text(question, *miss.change);
  const Modelled& modelled = *question.base.modelled;
  const Bytes state = least_state(modelled.model, modelled.context, modelled.state);
  const double least = std::ceil(state / question.limit());
  const int node = question.base.hardware->cluster.gpus_per_node;
  text += fmt::format("none; weights, gradients and optimizer states alone take {}, {:.0f} GPUs",
                      human(state), least);
  if (least <= question.gpus) return text;
  return text + fmt::format(": ask with --gpus {:.0f} or more", node * std::ceil(least / node));
}

}  // namespace

std::string no_fit_text(const ClusterPlan& plan, std::span<const ClusterEntry> clusters) {
  const PlanQuestion& question = plan.question;
  const PlanCounts& counts = plan.result.counts;
  const std::string who = fmt::format("{} on {} GPUs of {}", question.base.modelled->model.name,
                                      question.gpus, question.base.hardware->name);
  if (counts.points == 0) {
    const std::string& refused = plan.result.divisions.refused;
    const auto framework = question.axes.runs_on;
    if (refused.empty() && framework) {
      return fmt::format(
          "{}: {} runs no layout that is asked for (docs/reference/plan.md#frameworks)", who,
          to_text(*framework));
    }
    const PlanDivisions& divisions = plan.result.divisions;
    const std::string batch =
        divisions.uneven == 0
            ? ""
            : fmt::format("; a batch of a multiple of {} loses no division", divisions.multiple);
    return fmt::format("{}: no layout divides: {} (docs/reference/plan.md#the-space){}", who,
                       refused, batch);
  }
  if (counts.too_large + counts.unfit == 0) {
    return fmt::format("{}: schedules refuse all {} layouts", who, counts.points);
  }
  std::string text =
      fmt::format("{}: none of {} layouts fits in {}", who, counts.points, human(question.limit()));
  if (plan.result.nearest) {
    return text +
           fmt::format("\n  nearest: {}", miss_text(question, *plan.result.nearest, clusters));
  }
  return text +
         "; their schedules find no room to plan in: other --schedules can say how much lacks";
}

}  // namespace pipesim
