// Orders of one placement within a limit, by every schedule that plans for one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// `kSought`: those that search looks at. `kAll`: also those that it leaves to `best`, whose orders
// hold other microbatches at once and may gain more by refinement.
enum class Included : std::uint8_t { kSought, kAll };

// Each keeps the limit under `problem`. Schedules that copy, that refuse the problem or find
// nothing are left out. So are orders with overlapped blocks, or with microbatches that overtake
// each other. With `kAll`, equal microbatches may overtake each other.
std::vector<Program> planned_within(const Problem& problem, Bytes limit, Included which);

}  // namespace pipesim
