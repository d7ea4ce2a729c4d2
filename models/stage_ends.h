// Layers on stages of which the first and the last hold less, as torchtitan counts them.
#pragma once

#include <optional>
#include <vector>

namespace pipesim {

// Decoder layers of every stage; the parts around them count as `first` and `last` layers. Nearly
// equal, more on the first stages (torchtitan's generate_llm_fqn_per_model_part). The first or the
// last is below 0 where it is too short. O(stages).
std::vector<int> layers_less_ends(int layers, int stages, int first, int last);

struct StageEnds {
  int first = 0;
  int last = 0;
};
// The inverse, with the fewest layers at the first stage; nothing where there is none.
// O(largest stage^2 stages).
std::optional<StageEnds> find_stage_ends(const std::vector<int>& layers_of_stages);

}  // namespace pipesim
