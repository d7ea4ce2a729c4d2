// Changes that make a case fit: the nearest for its GPUs' memory, the nearest offload for its
// hosts'.
#pragma once

#include <optional>

#include "models/memory.h"
#include "sim/case/simulate.h"

namespace pipesim {

// A case that offloads less, and what that takes of the fullest node.
struct HostPlan {
  Case made;
  Bytes node;
};

struct Advice {
  std::optional<MemoryChange> change = {};  // where the peak exceeds the capacity
  std::optional<HostPlan> offload = {};     // where hosts lack memory; empty: nothing that offloads
};

// Plans or simulates anew for each change that is tried; nothing where the result fits.
Advice advise(const Case& made, const Result& result, const Engine* engine = nullptr);

// The nearest single change with which the outline's program would fit the capacity. Where the
// schedule takes a limit in total, that comes first, since it changes the order alone; else the
// changes of models/memory.h. Empty when there is none. Requires a model.
std::optional<MemoryChange> change_that_fits(const Outline& outline);

// The offload that fits a full host. For so many chunks and for fewer, the most microbatches are
// sought by halving. The plan whose devices keep least is taken; ties: the first. Empty where none
// keeps less than without offload. Requires a result that offloads.
std::optional<HostPlan> offload_that_fits(const Case& made, const Result& result,
                                          const Engine* engine = nullptr);

// The content of reports: a case, its result, and the change that would make it fit.
struct Answer {
  Case made;
  Result result;
  Advice advice = {};
};

// Simulates the case and looks for advice.
Answer answer(Case made, const Engine* engine = nullptr, Detail detail = Detail::kCauses);

}  // namespace pipesim
