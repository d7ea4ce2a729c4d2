// Until when a microbatch keeps a tensor.
#pragma once

#include <cstdint>

namespace pipesim {

enum class Kept : std::uint8_t {
  kForB,     // from F to the end of B
  kForW,     // from F to the end of W
  kForBoth,  // the same, read by both
  kFromB     // made by B, until the end of W
};

}  // namespace pipesim
