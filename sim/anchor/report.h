// Results of anchoring, for people and as the file that `cost.anchor` takes (sim/read/anchor.h).
#pragma once

#include <span>
#include <string>

#include "sim/anchor/fit.h"

namespace pipesim {

// The quantities, what was not told apart, and each run before and after.
std::string anchor_table(std::span<const MeasuredStep> runs, const AnchorFit& fit);

// Reads back as the same factors.
std::string anchor_yaml(std::span<const MeasuredStep> runs, const AnchorFit& fit);

}  // namespace pipesim
