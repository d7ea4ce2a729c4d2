#include "sim/layouts/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "sim/core/text.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr double kMostFactor = 100;

struct Changeable {
  const char* key;
  const char* name;
  // False where the question has no such number.
  bool (*change)(PlanQuestion& question, double factor);
};

bool change_memory(PlanQuestion& question, double factor) {
  auto& capacity = question.base.modelled->capacity;
  capacity = factor * *capacity;
  return true;
}

// Changes the network of messages and of collectives.
bool change_network(PlanQuestion& question, double factor) {
  Hardware& hardware = *question.base.hardware;
  hardware.cluster.nic_bandwidth = factor * hardware.cluster.nic_bandwidth;
  hardware.interconnect.nic_bandwidth = factor * hardware.interconnect.nic_bandwidth;
  for (auto& curve : hardware.interconnect.between_nodes) {
    if (curve) curve->bandwidth = factor * curve->bandwidth;
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

bool change_vocabulary(PlanQuestion& question, double factor) {
  int& size = question.base.modelled->model.vocab_size;
  size = std::max(1, static_cast<int>(std::lround(factor * size)));
  return true;
}

constexpr std::array kQuantities{Changeable{"memory", "memory of a GPU", change_memory},
                                 Changeable{"network", "bandwidth between nodes", change_network},
                                 Changeable{"node", "bandwidth within a node", change_node},
                                 Changeable{"gpus", "GPUs", change_gpus},
                                 Changeable{"vocabulary", "vocabulary", change_vocabulary}};
constexpr size_t kUnnamed = 4;  // those that are tried where none is named

// The search of a changed question; nothing where it was stopped.
std::optional<PlanWhatIf> searched(std::string quantity, double factor, PlanQuestion changed,
                                   const PlanOptions& options) {
  PlanResult found = plan(changed, options);
  if (found.stopped) return std::nullopt;  // what it has may not be the fastest
  return PlanWhatIf{std::move(quantity), factor, std::move(changed), std::move(found.best)};
}

}  // namespace

std::string PlanWhatIf::change() const {
  return factor == 0 ? quantity : fmt::format("{} x {}", quantity, factor);
}

WhatIfChange read_what_if(const std::string& text, const Location& where) {
  const size_t equals = text.find('=');
  WhatIfChange change{.name = text.substr(0, equals), .where = where};
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (change.name == "schedule") {
    const std::vector<std::string> valid = schedule_names();
    change.schedule = meant_name(value, valid);
    if (find_schedule(change.schedule) == nullptr) {
      throw InputError(where,
                       fmt::format("unknown schedule '{}'{}", value, suggestion(value, valid)));
    }
    return change;
  }
  std::vector<std::string> known{"schedule"};
  for (const Changeable& each : kQuantities) known.emplace_back(each.key);
  if (std::ranges::count(known, change.name) == 0) {
    throw InputError(
        where, fmt::format("unknown what-if '{}'{}", change.name, suggestion(change.name, known)));
  }
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), change.factor);
  const bool read = error == std::errc() && end == value.data() + value.size();
  if (!read || !(change.factor > 0) || change.factor > kMostFactor || change.factor == 1) {
    throw InputError(where, fmt::format("'{}': expected a factor above 0, up to {:g} and not 1, as "
                                        "{}=0.5",
                                        text, kMostFactor, change.name));
  }
  return change;
}

std::vector<PlanWhatIf> plan_named_what_ifs(const PlanQuestion& question, PlanOptions options,
                                            std::span<const WhatIfChange> changes) {
  options.best = 1;
  std::vector<PlanWhatIf> all;
  for (const WhatIfChange& each : changes) {
    PlanQuestion changed = question;
    std::string quantity = "schedule " + each.schedule;
    if (each.factor == 0) {
      changed.axes.schedules = {each.schedule};
    } else {
      const auto* const known = std::ranges::find(kQuantities, each.name, &Changeable::key);
      quantity = known->name;
      if (!known->change(changed, each.factor)) {
        throw InputError(each.where, fmt::format("'{}={:g}': this question has no such change",
                                                 each.name, each.factor));
      }
    }
    auto found = searched(std::move(quantity), each.factor, std::move(changed), options);
    if (!found) return all;
    all.push_back(std::move(*found));
  }
  return all;
}

std::vector<PlanWhatIf> plan_what_ifs(const PlanQuestion& question, PlanOptions options,
                                      std::span<const double> factors) {
  options.best = 1;
  std::vector<PlanWhatIf> all;
  for (const Changeable& quantity : std::span(kQuantities).first(kUnnamed)) {
    for (const double factor : factors) {
      if (options.stop && options.stop()) return all;
      PlanQuestion changed = question;
      if (!quantity.change(changed, factor)) continue;
      auto found = searched(quantity.name, factor, std::move(changed), options);
      if (!found) return all;
      all.push_back(std::move(*found));
    }
  }
  return all;
}

}  // namespace pipesim
