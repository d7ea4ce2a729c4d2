// The constants of models/gpu.h and models/collective.h that fit measured rows best.
//
// What is minimised is the mean absolute relative error, so that short kernels weigh as much as
// long ones and single outliers do not pull. For matmuls it is taken over the rows that training
// uses (m, n and k multiples of 64, at least 1024), and with a quarter of the weight over the
// others of at least 64. Deterministic. Errors: std::invalid_argument without rows that are long
// enough.
#pragma once

#include <span>
#include <vector>

#include "models/collective.h"
#include "models/gpu.h"

namespace pipesim::calibration {

struct MatmulRow {
  Matmul matmul;
  Seconds measured;
};

[[nodiscard]] bool used_in_training(const Matmul& matmul);

// `gpu` with launch and matmul constants fitted; its peak, memory bandwidth and multiprocessors
// are as given.
[[nodiscard]] Gpu fit_matmul(Gpu gpu, std::span<const MatmulRow> rows);

// (model - measured) / measured.
[[nodiscard]] std::vector<double> errors(const Gpu& gpu, std::span<const MatmulRow> rows);

struct CollectiveRow {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 2;
  Bytes bytes;
  Seconds measured;
};

// Rows of one kind.
[[nodiscard]] CollectiveCurve fit_collective(std::span<const CollectiveRow> rows);
[[nodiscard]] std::vector<double> errors(const CollectiveCurve& curve,
                                         std::span<const CollectiveRow> rows);

}  // namespace pipesim::calibration
