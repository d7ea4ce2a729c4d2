// Resolves `balance: auto`. Among splits of layers over stages that fit a GPU's memory it finds the
// one with the least maximal stage time. From there it finds one with a shorter iteration
// (faster_split.h).
//
// A stage takes its layers' seconds of F, B and W, and of R where every chunk recomputes
// (layer_weights). The embedding, MTP modules and the output are layers of their own seconds. The
// schedule's program decides what a device keeps (memory_room.h). Where the program's order does
// not depend on the split, the split is the best of all that fit (models/balance.h).
//
// A schedule that orders by seconds or bytes, or copies to the host, is planned again with the
// split found, at most two dozen times. It may miss a better split. If none found so fits, the
// search restarts from the split with the least slowest stage. The returned split was planned and
// fits.
#pragma once

#include <optional>

#include "models/layout.h"
#include "sim/case/case.h"

namespace pipesim {

// Seconds of the outline's layers, or, where costs are given, their FLOPs. Requires a model.
// O(layer kinds).
LayerSeconds layer_weights(const Outline& outline);

// Nothing when no split that this finds fits. Requires asks_for_balance.
std::optional<Layout> balanced_layout(const Outline& outline);

}  // namespace pipesim
