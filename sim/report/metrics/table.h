// Every number that outputs name, defined once: CSV, JSON, tables, pages, figures and Python read
// this. A metric is one entry; `pipesim list metrics --format markdown` makes its line of
// docs/reference/metrics.md.
#pragma once

#include <array>

#include "sim/report/metrics/metric.h"
#include "sim/scenario/gpus.h"

namespace pipesim {

namespace asked {

// A number of an ensemble of runs.
template <Seconds Ensemble::*Of>
std::optional<double> ensemble(const Scenario& /*scenario*/, const Result& result) {
  const auto& all = result.report.ensemble;
  return all ? std::optional((*all.*Of).value()) : std::nullopt;
}

template <double Band::*End>
std::optional<double> end_of_band(const Scenario& scenario, const Result& result) {
  if (!scenario.band) return std::nullopt;
  return *scenario.band.*End * result.report.iteration.value();
}

template <double MemoryBand::*End>
std::optional<double> end_of_peak(const Scenario& scenario, const Result& result) {
  const auto& peak = result.report.peak_memory;
  if (!peak || !scenario.modelled) return std::nullopt;
  return scenario.modelled->band.*End * peak->value();
}

template <auto Throughput::*Of>
std::optional<double> rate(const Scenario& /*scenario*/, const Result& result) {
  if (!result.throughput) return std::nullopt;
  return (*result.throughput).*Of;
}

template <auto Report::*Of>
std::optional<double> number(const Scenario& /*scenario*/, const Result& result) {
  if constexpr (requires { (result.report.*Of).value(); }) {
    return (result.report.*Of).value();
  } else {
    return result.report.*Of;
  }
}

}  // namespace asked

// The metrics of a run come first: they are the columns of `run --csv` and of a sweep.
inline constexpr auto kMetrics = std::to_array<Metric>({
    {.name = "gpus",
     .label = "GPUs",
     .unit = MetricUnit::kCount,
     .of = [](const Scenario& scenario, const Result&) -> std::optional<double> {
       return static_cast<double>(gpus_of(scenario.parallel));
     },
     .definition = "world size: tensor x context x pipeline x data-parallel ranks"},
    {.name = "iteration_seconds",
     .label = "iteration",
     .title = "iteration time",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .band = BandRule::kAsSeconds,
     .of_all_gpus = true,
     .of = asked::number<&Report::iteration>,
     .definition = "period of an iteration in steady state; the mean of an ensemble"},
    {.name = "makespan_seconds",
     .label = "makespan",
     .title = "makespan, steady",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::number<&Report::makespan>,
     .definition = "first pass start to last pass end of one iteration in steady state"},
    {.name = "makespan_from_rest_seconds",
     .label = "makespan from rest",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::number<&Report::makespan_from_rest>,
     .definition =
         "first pass start to last pass end of an iteration before which all devices are idle"},
    {.name = "cost_seconds",
     .label = "cost",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::number<&Report::cost>,
     .definition = "largest span of a device: its first pass start to its last pass end"},
    {.name = "bubble_rate",
     .label = "bubble rate",
     .unit = MetricUnit::kShare,
     .better = Better::kLess,
     .digits = 2,
     .of = asked::number<&Report::bubble_rate>,
     .definition = "(cost - work) / cost of the device with the largest span"},
    {.name = "bubble_rate_busiest",
     .label = "bubble of busiest",
     .title = "bubble rate, of the busiest device",
     .unit = MetricUnit::kShare,
     .better = Better::kLess,
     .digits = 2,
     .of = asked::number<&Report::bubble_rate_busiest>,
     .definition = "(cost - most work) / cost: the share that a better order could save at most"},
    {.name = "bubble_rate_makespan",
     .label = "bubble of makespan",
     .title = "bubble rate, of the makespan",
     .unit = MetricUnit::kShare,
     .better = Better::kLess,
     .digits = 2,
     .of = asked::number<&Report::bubble_rate_makespan>,
     .definition = "mean over devices of (makespan - work) / makespan"},
    {.name = "bubble_over_ideal",
     .label = "bubble over ideal",
     .title = "bubble over ideal time",
     .unit = MetricUnit::kShare,
     .better = Better::kLess,
     .digits = 2,
     .of = asked::number<&Report::bubble_over_ideal>,
     .definition = "sum of idle / sum of busy; idle = period - busy, the optimizer step is busy"},
    {.name = "samples_per_second",
     .label = "samples/s",
     .title = "samples per second",
     .unit = MetricUnit::kPerSecond,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .of_all_gpus = true,
     .digits = 3,
     .of = asked::rate<&Throughput::samples_per_second>,
     .definition = "samples of all replicas / iteration"},
    {.name = "samples_per_second_per_gpu",
     .label = "samples/s/GPU",
     .title = "samples per second and GPU",
     .unit = MetricUnit::kPerSecond,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 3,
     .of = asked::rate<&Throughput::samples_per_second_per_gpu>,
     .definition = "samples_per_second / gpus"},
    {.name = "tokens_per_second_per_gpu",
     .label = "tokens/s/GPU",
     .title = "tokens per second and GPU",
     .unit = MetricUnit::kPerSecond,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .of = [](const Scenario& scenario, const Result& result) -> std::optional<double> {
       const auto& length = scenario.batch.seq_length;
       if (!result.throughput || !length) return std::nullopt;
       return *length * result.throughput->samples_per_second_per_gpu;
     },
     .definition = "seq_length x samples_per_second_per_gpu"},
    {.name = "microbatches_per_second",
     .label = "microbatches/s",
     .title = "throughput",
     .unit = MetricUnit::kPerSecond,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .of_all_gpus = true,
     .digits = 3,
     .of = [](const Scenario& scenario, const Result& result) -> std::optional<double> {
       return scenario.batch.microbatches / result.report.iteration.value();
     },
     .definition = "microbatches of one pipeline / iteration"},
    {.name = "microbatches_per_second_per_gpu",
     .label = "microbatches/s/GPU",
     .title = "microbatches per second and GPU",
     .unit = MetricUnit::kPerSecond,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 3,
     .of = [](const Scenario& scenario, const Result& result) -> std::optional<double> {
       const double all = 1.0 * scenario.batch.microbatches * scenario.parallel.data;
       return all / result.report.iteration.value() /
              static_cast<double>(gpus_of(scenario.parallel));
     },
     .definition = "microbatches of all replicas / iteration / gpus"},
    {.name = "model_tflops_per_gpu",
     .label = "TFLOP/s/GPU",
     .title = "model TFLOP/s per GPU",
     .unit = MetricUnit::kTeraflops,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 1,
     .of = asked::rate<&Throughput::model_tflops_per_gpu>,
     .definition = "the model's FLOPs, all of attention counted / iteration / gpus"},
    {.name = "mfu",
     .label = "MFU",
     .unit = MetricUnit::kShare,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 2,
     .of = asked::rate<&Throughput::mfu>,
     .definition = "model_tflops_per_gpu / the GPU's peak"},
    {.name = "model_tflops_per_gpu_causal",
     .label = "TFLOP/s/GPU, causal",
     .title = "model TFLOP/s per GPU, causal",
     .unit = MetricUnit::kTeraflops,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 1,
     .of = asked::rate<&Throughput::model_tflops_per_gpu_causal>,
     .definition = "model_tflops_per_gpu with the pairs that a causal model attends to"},
    {.name = "mfu_causal",
     .label = "MFU, causal",
     .unit = MetricUnit::kShare,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 2,
     .of = asked::rate<&Throughput::mfu_causal>,
     .definition = "model_tflops_per_gpu_causal / the GPU's peak"},
    {.name = "hfu",
     .label = "HFU",
     .unit = MetricUnit::kShare,
     .better = Better::kMore,
     .band = BandRule::kAsRate,
     .digits = 2,
     .of = asked::rate<&Throughput::hfu>,
     .definition = "mfu with forwards that are run again; unknown under selective recomputation"},
    {.name = "peak_activation_bytes",
     .label = "peak activation",
     .title = "peak activation memory",
     .unit = MetricUnit::kBytes,
     .better = Better::kLess,
     .of = [](const Scenario& scenario, const Result& result) -> std::optional<double> {
       if (!knows_memory(scenario)) return std::nullopt;
       return result.report.peak_activation.value();
     },
     .definition = "most bytes of activations on a device at a time"},
    {.name = "peak_memory_bytes",
     .label = "peak memory",
     .unit = MetricUnit::kBytes,
     .better = Better::kLess,
     .of = [](const Scenario&, const Result& result) -> std::optional<double> {
       const auto& peak = result.report.peak_memory;
       return peak ? std::optional(peak->value()) : std::nullopt;
     },
     .definition = "most bytes on a device at a time: activations, weights, gradients, optimizer "
                   "state, buffers, overhead"},
    {.name = "capacity_bytes",
     .label = "GPU memory",
     .title = "memory of a GPU",
     .unit = MetricUnit::kBytes,
     .of = [](const Scenario& scenario, const Result&) -> std::optional<double> {
       if (!scenario.modelled || !scenario.modelled->capacity) return std::nullopt;
       return scenario.modelled->capacity->value();
     },
     .definition = "memory of a GPU less the margin"},
    {.name = "peak_memory_low_bytes",
     .label = "peak memory, low",
     .title = "low end of the peak's band",
     .unit = MetricUnit::kBytes,
     .better = Better::kLess,
     .of = asked::end_of_peak<&MemoryBand::low>,
     .definition = "low end of the band of peak_memory_bytes"},
    {.name = "peak_memory_high_bytes",
     .label = "peak memory, high",
     .title = "high end of the peak's band",
     .unit = MetricUnit::kBytes,
     .better = Better::kLess,
     .of = asked::end_of_peak<&MemoryBand::high>,
     .definition = "high end of the band of peak_memory_bytes"},
    {.name = "fits",
     .label = "fits",
     .unit = MetricUnit::kFit,
     .of = [](const Scenario&, const Result& result) -> std::optional<double> {
       return result.fits ? std::optional(static_cast<double>(*result.fits)) : std::nullopt;
     },
     .definition = "yes, no, or tight where capacity_bytes lies inside the band of "
                   "peak_memory_bytes"},
    {.name = "iteration_stddev_seconds",
     .label = "stddev",
     .title = "standard deviation of iterations",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::ensemble<&Ensemble::stddev>,
     .definition = "of the iterations of an ensemble"},
    {.name = "iteration_p05_seconds",
     .label = "p05",
     .title = "5th percentile of iterations",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::ensemble<&Ensemble::p05>,
     .definition = "5th percentile of an ensemble"},
    {.name = "iteration_p50_seconds",
     .label = "median",
     .title = "median of iterations",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::ensemble<&Ensemble::p50>,
     .definition = "median of an ensemble"},
    {.name = "iteration_p95_seconds",
     .label = "p95",
     .title = "95th percentile of iterations",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::ensemble<&Ensemble::p95>,
     .definition = "95th percentile of an ensemble"},
    {.name = "iteration_low_seconds",
     .label = "iteration, low",
     .title = "low end of the band",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::end_of_band<&Band::low>,
     .definition = "low end of the band of iteration_seconds"},
    {.name = "iteration_high_seconds",
     .label = "iteration, high",
     .title = "high end of the band",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .of = asked::end_of_band<&Band::high>,
     .definition = "high end of the band of iteration_seconds"},
    // From here on of a search or a plan.
    {.name = "limit_bytes",
     .label = "limit",
     .title = "memory limit",
     .unit = MetricUnit::kBytes,
     .definition = "limit on activations of a device"},
    {.name = "limit_over_p_microbatches",
     .label = "limit/pM_B",
     .title = "memory limit (x p microbatches)",
     .unit = MetricUnit::kRatio,
     .digits = 4,
     .definition = "limit_bytes / what p microbatches keep on a device"},
    {.name = "registered_cost_seconds",
     .label = "registered",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .definition = "cost_seconds of the best registered schedule"},
    {.name = "bound_seconds",
     .label = "bound",
     .title = "lower bound",
     .unit = MetricUnit::kSeconds,
     .of_all_gpus = true,
     .definition = "lower bound on the time of any order within the limit"},
    {.name = "contended_iteration_seconds",
     .label = "with contention",
     .title = "iteration time with contention",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .band = BandRule::kAsSeconds,
     .of_all_gpus = true,
     .definition = "iteration_seconds where messages share links and NICs"},
    {.name = "contended_stddev_seconds",
     .label = "jitter",
     .title = "standard deviation with contention",
     .unit = MetricUnit::kSeconds,
     .better = Better::kLess,
     .of_all_gpus = true,
     .definition = "iteration_stddev_seconds of the runs with contention"},
    {.name = "headroom_bytes",
     .label = "headroom",
     .unit = MetricUnit::kBytes,
     .better = Better::kMore,
     .definition = "capacity_bytes less peak_memory_bytes"},
    {.name = "host_memory_bytes",
     .label = "on the host of a node",
     .title = "host memory of a node",
     .unit = MetricUnit::kBytes,
     .better = Better::kLess,
     .definition = "most bytes of offloaded activations and states on the host of a node"},
    {.name = "bubble",
     .label = "bubble",
     .unit = MetricUnit::kShare,
     .better = Better::kLess,
     .digits = 1,
     .definition = "idle share of an iteration but that of collectives: ramps, order, imbalance, "
                   "transfers, host copies"},
    {.name = "days",
     .label = "days",
     .unit = MetricUnit::kDays,
     .better = Better::kLess,
     .band = BandRule::kAsSeconds,
     .of_all_gpus = true,
     .digits = 1,
     .definition = "training on the tokens asked for, without failures"},
    {.name = "gpu_hours",
     .label = "GPU-hours",
     .unit = MetricUnit::kGpuHours,
     .better = Better::kLess,
     .band = BandRule::kAsSeconds,
     .definition = "days x 24 x gpus"},
    {.name = "price",
     .label = "price",
     .unit = MetricUnit::kMoney,
     .better = Better::kLess,
     .band = BandRule::kAsSeconds,
     .definition = "gpu_hours x the price of a GPU-hour"},
});

}  // namespace pipesim
