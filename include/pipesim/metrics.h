// The numbers of a simulation, by the names of docs/reference/metrics.md. Times are seconds, memory
// is bytes, shares are 0 to 1.
#pragma once

#include <optional>
#include <pipesim/error.h>
#include <string>
#include <string_view>
#include <vector>

namespace pipesim::api {

// A number is empty where it does not apply.
struct Metrics {
  double gpus = 0;               // of all ranks
  double iteration_seconds = 0;  // period in steady state; the mean of an ensemble
  double makespan_seconds = 0;   // first pass start to last pass end of one iteration
  double makespan_from_rest_seconds = 0;
  double cost_seconds = 0;          // largest span of a device
  double bubble_rate = 0;           // share of cost_seconds, of the device with that span
  double bubble_rate_busiest = 0;   // share, of the device with most work
  double bubble_rate_makespan = 0;  // share of makespan_seconds, a mean over devices
  double bubble_over_ideal = 0;     // idle over busy seconds
  std::optional<double> samples_per_second, samples_per_second_per_gpu, tokens_per_second_per_gpu;
  double microbatches_per_second = 0, microbatches_per_second_per_gpu = 0;
  std::optional<double> model_tflops_per_gpu;  // TFLOP/s
  std::optional<double> mfu;                   // share of the GPU's peak
  std::optional<double> model_tflops_per_gpu_causal, mfu_causal, hfu;
  std::optional<double> peak_activation_bytes;  // of the fullest device
  std::optional<double> peak_memory_bytes;      // likewise, with all else that it holds
  std::optional<double> capacity_bytes;         // of a GPU, less the margin
  std::optional<double> peak_memory_low_bytes, peak_memory_high_bytes;  // the peak's band
  std::string fits;  // "yes", "tight" or "no"; empty where a capacity is not known
  // The spread of an ensemble of runs.
  std::optional<double> iteration_stddev_seconds, iteration_p05_seconds, iteration_p50_seconds,
      iteration_p95_seconds;
  std::optional<double> iteration_low_seconds, iteration_high_seconds;  // the iteration's band
};

// The names above in their order, which is that of the columns of `pipesim run --csv`.
std::vector<std::string> metric_names();
// One number by its name; `fits` is 2 for yes, 1 for tight, 0 for no. Error for an
// unknown name; suggests the nearest.
std::optional<double> metric(const Metrics& metrics, std::string_view name);

}  // namespace pipesim::api
