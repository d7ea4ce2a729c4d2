// Rates that follow from a case's iteration time (docs/reference/model.md).
#pragma once

#include <optional>
#include <span>

#include "sim/case/case.h"
#include "sim/core/units.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct Throughput {
  double samples_per_second = 0;
  double samples_per_second_per_gpu = 0;
  // With a model and a named cluster. All of attention counted, as Megatron-LM does; `causal`: only
  // the pairs that a causal model attends to, about half. `hfu` counts forwards that are run again;
  // not known under selective recomputation.
  std::optional<double> model_tflops_per_gpu = {};
  std::optional<double> mfu = {};
  std::optional<double> model_tflops_per_gpu_causal = {};
  std::optional<double> mfu_causal = {};
  std::optional<double> hfu = {};
};

// True where counting all of attention adds a fifth or more to a causal model's FLOPs, as at long
// sequences. People are shown the causal MFU there.
[[nodiscard]] constexpr bool shows_causal(double mfu, double mfu_causal) {
  return mfu >= 1.2 * mfu_causal && mfu > 0;
}

// The mean over runs that took so many seconds each: all their work by all their seconds. A number
// that one run lacks, the mean lacks.
Throughput mean_of(std::span<const Throughput> runs, std::span<const double> seconds);

// Empty where the micro batch size is not known.
std::optional<Throughput> throughput_of(const Case& made, const Program& program,
                                        Seconds iteration);

}  // namespace pipesim
