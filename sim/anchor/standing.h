// Where a measurement stands against what simulation and measured runs like it say.
#pragma once

#include <optional>
#include <string>

#include "models/memory_fit.h"
#include "sim/band/band.h"
#include "sim/core/units.h"

namespace pipesim {

// By how much a measurement lies over the upper end of a band, as a share, or below the lower end,
// negative; 0 inside it.
double outside(double measured, double low, double high);

// A measured step against a simulated one's band. Without a band nothing is outside.
double outside_band(Seconds measured, Seconds simulated, const std::optional<Band>& band);

// "inside the band of 35 runs like it, 2.78 s to 3.13 s (h100-sxm bf16 dense, NeMo 2025)". Where it
// is outside: by how much, and what to check then.
std::string standing_text(Seconds measured, Seconds simulated, const std::optional<Band>& band);

// The most that PyTorch allocated; `simulated` is without CUDA's context.
std::string standing_text(Bytes measured, Bytes simulated, const MemoryBand& band);

}  // namespace pipesim
