// A number of the hardware as it is written down, with where it comes from.
#pragma once

#include <string>

namespace pipesim {

struct Sourced {
  std::string key;  // "matmul.efficiency"
  std::string value;
  std::string source;
};

}  // namespace pipesim
