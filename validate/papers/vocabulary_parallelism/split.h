// Splits of layers whose last stage has a number of its own, as Vocabulary Parallelism's runs have
// them.
#pragma once

#include <vector>

namespace pipesim::vocabulary_parallelism {

// The other stages share the rest, later ones taking what does not divide (as the artifact's
// measured times have it).
inline std::vector<int> split_with_last(int layers, int last, int stages) {
  std::vector<int> split(stages, last);
  const int rest = layers - last;
  const int others = stages - 1;
  for (int stage = 0; stage < others; ++stage) {
    split[stage] = rest / others + (stage >= others - rest % others ? 1 : 0);
  }
  return split;
}

}  // namespace pipesim::vocabulary_parallelism
