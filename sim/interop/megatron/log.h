// The step time of a Megatron-LM training log.
#pragma once

#include <cstddef>
#include <string_view>

#include "sim/core/units.h"

namespace pipesim {

struct LoggedSteps {
  Seconds median;
  std::size_t lines = 0;  // that the median is of
  std::size_t dropped =
      0;  // before them: the first 3, or half of the lines where there are fewer than 6
};

// Of the lines that hold "elapsed time per iteration (ms):" and a number; the first ones are
// warm-up and are dropped. `lines` is 0 where there is no such line. O(n log n).
LoggedSteps steps_of_log(std::string_view log);

}  // namespace pipesim
