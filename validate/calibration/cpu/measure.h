// Measures one core with the kernels of `pipesim execute --compute`, in the form of a GPU's
// measurements: matmuls by OpenBLAS, attention and the kernels between them, in float32.
//
// Points are those of shapes.h, whose bytes count bf16: a curve that is fitted to them takes that
// into its efficiency. Times are the thread's own, medians of
// repetitions after one untimed.
#pragma once

#include <functional>

#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

struct CpuPlan {
  std::vector<MatmulSpec> matmuls;
  std::vector<AttentionShape> attention;
  std::vector<KernelSpec> kernels;
  std::vector<LayerSlice> layers;  // whole passes, to hold the curves against
  int repetitions = 5;
};

// The shapes of a model of that hidden size and sequence, smaller ones, and those of 1024 and more
// that a fit asks for. About 10 seconds with 256 and 256.
[[nodiscard]] CpuPlan make_cpu_plan(int hidden, int sequence);

// `progress` is called with the measurements after each group, so that none is lost to an end.
// InfeasibleError without OpenBLAS.
[[nodiscard]] Measurements measure_cpu(const CpuPlan& plan,
                                       const std::function<void(const Measurements&)>& progress);

}  // namespace pipesim::calibration
