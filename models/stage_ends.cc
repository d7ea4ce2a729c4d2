#include "models/stage_ends.h"

#include <algorithm>
#include <numeric>

namespace pipesim {

std::vector<int> layers_less_ends(int layers, int stages, int first, int last) {
  const int all = layers + first + last;
  std::vector<int> split;
  for (int stage = 0; stage < stages; ++stage) {
    split.push_back(all / stages + (stage < all % stages ? 1 : 0));
  }
  split.front() -= first;
  split.back() -= last;
  return split;
}

std::optional<StageEnds> find_stage_ends(const std::vector<int>& layers_of_stages) {
  const int stages = static_cast<int>(layers_of_stages.size());
  const int layers = std::accumulate(layers_of_stages.begin(), layers_of_stages.end(), 0);
  // An end counts as no more than what another stage holds, or this one lacks.
  const int most = std::ranges::max(layers_of_stages) + 1;
  for (int first = 0; first <= most; ++first) {
    for (int last = 0; last <= most; ++last) {
      if (layers_less_ends(layers, stages, first, last) == layers_of_stages) {
        return StageEnds{first, last};
      }
    }
  }
  return std::nullopt;
}

}  // namespace pipesim
