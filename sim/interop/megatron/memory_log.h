// The memory of a Megatron-LM training log.
#pragma once

#include <cstddef>
#include <string_view>

#include "sim/core/units.h"

namespace pipesim {

struct LoggedMemory {
  Bytes allocated;        // the most that a rank allocated; 0 where no line says it
  std::size_t lines = 0;  // that say it, of any rank
};

// Of the lines "... memory (MB) | allocated: A | max allocated: M | reserved: ...", as a rank
// prints them once it has trained for an iteration: the largest M, in MiB. O(n).
LoggedMemory memory_of_log(std::string_view log);

}  // namespace pipesim
