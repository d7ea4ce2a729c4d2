// A number of the hardware as it is written down, with where it comes from.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

struct Sourced {
  std::string key;  // "matmul.efficiency"
  std::string value;
  std::string source;
};

// Replaces the number of this key, or adds it at the end.
void put(std::vector<Sourced>& numbers, Sourced number);

}  // namespace pipesim
