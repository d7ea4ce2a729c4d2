// A point of a plan's space on its way through the search (plan.cc): what is known of it.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "sim/layouts/layer_splits.h"
#include "sim/layouts/outcome.h"

namespace pipesim {

struct PlanCandidate {
  size_t id = 0;
  double bound = 0;  // of iteration seconds
  bool sharp = false;
  bool tight = false;              // at best, by its bound on memory
  const Layout* layout = nullptr;  // where the split is balanced
  bool ran_without = false;        // of one that offloads: it was run without
  int recompute_layers = 0;        // of each stage, where not all need to be
  Bytes memory = {};               // its bound
};

// Which of two waits behind the other.
struct PlanBehind {
  bool operator()(const PlanCandidate& a, const PlanCandidate& b) const {
    return std::tie(a.tight, a.bound, a.id) > std::tie(b.tight, b.bound, b.id);
  }
};

// Which of two needs more memory.
struct PlanNeedsMore {
  bool operator()(const PlanCandidate& a, const PlanCandidate& b) const {
    return std::tie(a.memory, a.id) > std::tie(b.memory, b.id);
  }
};

enum class PlanFate : std::uint8_t { kWaits, kRefused, kTooLarge, kRepeated, kUnfit, kPlanned };

struct PlanStep {
  PlanCandidate candidate;
  PlanFate fate = PlanFate::kWaits;
  Planned planned = {};
  Bytes memory = {};                               // its bound, or peak
  std::optional<BalancedLayouts::Key> split = {};  // where it is to be balanced,
  std::optional<Layout> even = {};                 // and an even one is a point of its own
};

}  // namespace pipesim
