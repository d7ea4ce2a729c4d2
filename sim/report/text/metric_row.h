// The numbers of one simulation as a row: what `run --csv` and the results of a sweep have as
// columns.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sim/case/simulate.h"
#include "sim/scenario/choice_columns.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Names with their units; docs/reference/model.md defines them. `fits_capacity` is 1 or 0; those of
// `iteration` with stddev, p05 and p95 are of an ensemble, whose mean the others are; low and high
// are the ends of its band (sim/band/band.h); the capacity is a GPU's memory less its margin, and
// `gpus` is the world size, of all replicas.
inline constexpr std::array<std::string_view, 26> kMetricNames{"gpus",
                                                               "iteration_seconds",
                                                               "makespan_seconds",
                                                               "cost_seconds",
                                                               "bubble_rate",
                                                               "bubble_rate_busiest",
                                                               "bubble_rate_makespan",
                                                               "bubble_over_ideal",
                                                               "samples_per_second",
                                                               "samples_per_second_per_gpu",
                                                               "microbatches_per_second_per_gpu",
                                                               "peak_activation_bytes",
                                                               "peak_memory_bytes",
                                                               "tokens_per_second_per_gpu",
                                                               "model_tflops_per_gpu",
                                                               "mfu",
                                                               "model_tflops_per_gpu_causal",
                                                               "mfu_causal",
                                                               "hfu",
                                                               "fits_capacity",
                                                               "iteration_stddev_seconds",
                                                               "iteration_p05_seconds",
                                                               "iteration_p95_seconds",
                                                               "iteration_low_seconds",
                                                               "iteration_high_seconds",
                                                               "capacity_bytes"};

// In the order of the names; nothing where it does not apply.
using MetricRow = std::array<std::optional<double>, kMetricNames.size()>;
// LogicError for a name that is none.
std::optional<double> metric(const MetricRow& row, std::string_view name);
MetricRow metrics_of(const Scenario& scenario, const Result& result);

// ",name,name" and ",value,value", behind the first columns. Values have the fewest digits
// that read back as the same number.
std::string metric_header();
std::string metric_fields(const MetricRow& metrics);

// "schedule,options,..." and the columns of a choice (choice_columns.h).
std::string choice_header();
std::string choice_fields(const ChoiceColumns& choice);

}  // namespace pipesim
