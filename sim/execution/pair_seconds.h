// How long an overlapped block takes, whatever its kind of backward.
#pragma once

#include <optional>

#include "sim/core/units.h"
#include "sim/pipeline/pass.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// Seconds of the block of two stages of a device. An F with B or W alone takes the share of the
// two's seconds that F with BW takes of theirs. It is no shorter than either pass. Nothing where
// one of the stages has no cost of blocks.
std::optional<Seconds> pair_seconds(const Problem& problem, int vs_forward, int vs_backward,
                                    const OverlappedPair& pair);

}  // namespace pipesim
