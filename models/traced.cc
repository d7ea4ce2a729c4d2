#include "models/traced.h"

#include <algorithm>

namespace pipesim {

bool has_square_sizes(const Traced& traced) {
  const auto is_square = [](const TracedTensor& tensor) { return tensor.elements.seq > 1; };
  return std::ranges::any_of(traced.blocks, [&](const TracedBlock& block) {
    return std::ranges::any_of(block.forward.moved, is_square) ||
           std::ranges::any_of(block.backward_input.moved, is_square);
  });
}

}  // namespace pipesim
