// Whole layers' passes as they were measured, against what the cost model says of the same layers.
//
// The model's seconds are those of `cost: measured` without what a framework adds between kernels,
// and without collectives, which no measured layer runs: kernels back to back. Each row is a
// measured one of the group `layer`; its error is (model - measured) / measured.
#pragma once

#include "models/hardware.h"
#include "models/transformer.h"
#include "validate/calibration/fitted_curve.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

struct LayerComparison {
  std::vector<FittedRow> rows;
  std::vector<NotMeasured> not_compared;  // layers whose shape is not known or cannot be
};

// `hardware` has the fitted curves.
[[nodiscard]] LayerComparison compare_layers(const Measurements& measured,
                                             const Hardware& hardware);

// By the shape that the point states (point_with_shape), or that its name has in the catalogue of
// layers. std::invalid_argument where there is neither.
[[nodiscard]] LayerSlice slice_of(const Point& point);

// One such layer as a model, without biases and rotary positions.
[[nodiscard]] Transformer transformer_of(const LayerShape& shape);

// Operations, as models/layer_work.h counts kernels, of what a point of the host ran: F, B with the
// weight gradients, or all three (FB), of `layers` such layers; attention is one where `fused`.
[[nodiscard]] double operations_of(const Point& point, bool fused);

// True where attention ran as one kernel, as the head of the rows says.
[[nodiscard]] bool is_fused(const Measurements& measured);

// Seconds of F, B or W of a slice; attention is one kernel where `fused`.
[[nodiscard]] Seconds modelled_seconds(const LayerSlice& slice, char pass, bool fused,
                                       const Hardware& hardware);

}  // namespace pipesim::calibration
