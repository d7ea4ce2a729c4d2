// The metrics of a planned layout (docs/reference/metrics.md), for every output that has them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/layouts/outcome.h"

namespace pipesim {

inline constexpr std::array<std::string_view, 18> kPlannedMetrics{"iteration_seconds",
                                                                  "contended_iteration_seconds",
                                                                  "contended_stddev_seconds",
                                                                  "iteration_low_seconds",
                                                                  "iteration_high_seconds",
                                                                  "tokens_per_second_per_gpu",
                                                                  "mfu",
                                                                  "mfu_causal",
                                                                  "peak_memory_bytes",
                                                                  "peak_memory_low_bytes",
                                                                  "peak_memory_high_bytes",
                                                                  "fits",
                                                                  "headroom_bytes",
                                                                  "host_memory_bytes",
                                                                  "bubble",
                                                                  "days",
                                                                  "gpu_hours",
                                                                  "price"};

// The metrics that need them are nothing without `tokens` of training in all, or without the
// `price` of a GPU-hour.
struct PlannedBudget {
  std::optional<double> tokens = {};
  std::optional<double> price = {};
};
// In the order of the names; nothing where one does not apply.
std::array<std::optional<double>, kPlannedMetrics.size()> planned_metrics(
    const PlanQuestion& question, const Planned& planned, const PlannedBudget& budget);

}  // namespace pipesim
