// The step time of a training log: of Megatron-LM, Megatron-Bridge, torchtitan, DeepSpeed, NeMo,
// nanotron, OLMo-core and ms-swift.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace pipesim {

// The size of a step, by which rates become seconds. 0: not known, and a rate says nothing.
struct StepSize {
  double samples = 0;         // of all ranks
  double tokens_per_gpu = 0;  // tokens of all ranks by the number of GPUs
};

struct LoggedSteps {
  Seconds median;
  std::size_t lines = 0;  // that the median is of
  // Before them: the first 3, or half of the lines where there are fewer than 6.
  std::size_t dropped = 0;
  // The last global batch size that a line says beside its time and that is not the step's; such
  // lines are left out.
  std::optional<double> other_batch;
};

// Reads the first form below that some line has; the first lines are warm-up and are dropped.
// `lines` is 0 where no line has any. O(n log n).
//
//   Megatron-LM      elapsed time per iteration (ms): 1010.5
//   Megatron-Bridge  Step Time : 5.2s
//   torchtitan       tps: 5,636          tokens a second and GPU
//   OLMo-core        throughput/device/TPS=5,636
//   DeepSpeed        iter time (s): 2.5, CurrSamplesPerSec=12.5 or SamplesPerSec=12.5
//   NeMo             train_step_timing in s: 2.34 (or `=`), or 41.36s/it, loss=
//   nanotron         elapsed_time_per_iteration_ms: 2.35K
//   ms-swift         'train_speed(iter/s)': 0.12
LoggedSteps steps_of_log(std::string_view log, const StepSize& size = {});

// The steps of the scenario's batch. InputError at `where` if the log has none.
struct Scenario;
LoggedSteps steps_of_log(std::string_view log, const Scenario& scenario, const Location& where);

}  // namespace pipesim
