// The step time of a training log: of Megatron-LM, torchtitan, DeepSpeed, NeMo and nanotron.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/core/units.h"

namespace pipesim {

// The size of a step, by which rates become seconds. 0: not known, and a rate says nothing.
struct StepSize {
  double samples = 0;         // of all ranks
  double tokens_per_gpu = 0;  // tokens of all ranks by the number of GPUs
};

struct Scenario;
StepSize step_size(const Scenario& scenario);

struct LoggedSteps {
  Seconds median;
  std::size_t lines = 0;  // that the median is of
  // Before them: the first 3, or half of the lines where there are fewer than 6.
  std::size_t dropped = 0;
};

// Reads the first form below that some line has; the first lines are warm-up and are dropped.
// `lines` is 0 where no line has any. O(n log n).
//
//   Megatron-LM   elapsed time per iteration (ms): 1010.5
//   torchtitan    tps: 5,636          tokens a second and GPU
//   DeepSpeed     iter time (s): 2.5, or CurrSamplesPerSec=12.5
//   NeMo          train_step_timing in s: 2.34 (or `=`)
//   nanotron      elapsed_time_per_iteration_ms: 2.35K
LoggedSteps steps_of_log(std::string_view log, const StepSize& size = {});

// The forms, for people whose log has none.
std::string step_forms();

}  // namespace pipesim
