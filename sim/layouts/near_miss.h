// A layout that does not fit, and what it lacks.
#pragma once

#include <optional>

#include "models/memory.h"
#include "sim/layouts/outcome.h"

namespace pipesim {

struct NearMiss {
  Planned planned;
  // The bytes that a GPU lacks: memory of its own, or, where it has enough, its part of the node's
  // host.
  Bytes over;
  bool host = false;
  std::optional<MemoryChange> change = {};  // the nearest that makes it fit (models/memory.h)
};

// Requires a layout that does not fit. Leaves `change` out.
NearMiss miss_of(const PlanQuestion& question, Planned planned);

// By the bytes that they lack, then iteration, then id.
bool is_nearer(const NearMiss& a, const NearMiss& b);

// The nearest change that makes a layout fit; empty where none does.
std::optional<MemoryChange> change_that_fits(const PlanQuestion& question, const Planned& planned);

}  // namespace pipesim
