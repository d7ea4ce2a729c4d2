// F, B and W of a layer and of the output vocabulary layer, composed from the measured parts.
//
// A pass is the sum of the medians of its kernels, each times how often the pass runs it; nothing
// overlaps within a pass. Tensor-parallel collectives are not part of it. p10 and p90 are the sums
// of the parts' p10 and p90: bounds for parts that vary together. Errors: none; a pass with a part
// that was not measured yields the missing key instead of a number.
#pragma once

#include <string>
#include <vector>

#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

struct Composition {
  Point point;                       // valid when `missing` is empty
  std::vector<std::string> missing;  // keys of the parts that are not there
};

// Keys of the measurements that make up one pass (F, B or W), in execution order by kind.
[[nodiscard]] std::vector<std::string> layer_parts(const LayerSlice& slice, char pass);
[[nodiscard]] std::vector<std::string> vocabulary_parts(const LayerSlice& slice, char pass);

[[nodiscard]] Composition compose_layer(const Measurements& measured, const LayerSlice& slice,
                                        char pass);
[[nodiscard]] Composition compose_vocabulary(const Measurements& measured, const LayerSlice& slice,
                                             char pass);

}  // namespace pipesim::calibration
