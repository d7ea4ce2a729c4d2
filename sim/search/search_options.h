// The choices of a search, and its report of progress.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "sim/core/units.h"
#include "sim/search/refine.h"

namespace pipesim {

// Effort of refinement, for each limit of a frontier.
constexpr double kFrontierEffort = 2e6;
// F and backward of all families, for each limit where they follow it.
constexpr double kMostSearchPasses = 1L << 30;

// How far a search is: `done` of `all` in the step's units.
struct SearchProgress {
  enum class Step : std::uint8_t { kFamilies, kFamiliesAtLimit, kLimits };
  Step step = Step::kFamilies;
  int done = 0, all = 0;
};

struct SearchOptions {
  int max_chunks = 2;                  // per device
  int max_splits = 1;                  // of a microbatch, along the sequence
  std::vector<std::string> schedules;  // empty: every registered and described one
  // True if families may also offload, or recompute, some chunks of every device: each number of
  // both, in combination. They plan for limits above the one to keep, since both then come below
  // it.
  bool offload = false;
  bool recompute = false;
  // The one limit that is asked for, where it is known already: of a family's own p x
  // device_activation(), or bytes. Orders of unequal microbatches (batch.order) are sought within
  // it, or without a limit where the schedule has no program within it.
  std::variant<std::monostate, double, Bytes> order_within = {};
  bool refine = true;
  RefineOptions refinement;
  // How many limits are going to be asked for, and how many passes may be planned for all of them.
  int limits = 1;
  double max_passes = kMostSearchPasses;
  // Called after each unit of progress; for a frontier's limits in any order and from any thread.
  std::function<void(const SearchProgress&)> progress = [](const SearchProgress&) {};
};

}  // namespace pipesim
