#include "library/metrics.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

#include "library/fields.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

constexpr auto kMetricFields = std::to_array<Field<api::Metrics>>({
    {"gpus", &api::Metrics::gpus},
    {"iteration_seconds", &api::Metrics::iteration_seconds},
    {"makespan_seconds", &api::Metrics::makespan_seconds},
    {"makespan_from_rest_seconds", &api::Metrics::makespan_from_rest_seconds},
    {"cost_seconds", &api::Metrics::cost_seconds},
    {"bubble_rate", &api::Metrics::bubble_rate},
    {"bubble_rate_busiest", &api::Metrics::bubble_rate_busiest},
    {"bubble_rate_makespan", &api::Metrics::bubble_rate_makespan},
    {"bubble_over_ideal", &api::Metrics::bubble_over_ideal},
    {"samples_per_second", &api::Metrics::samples_per_second},
    {"samples_per_second_per_gpu", &api::Metrics::samples_per_second_per_gpu},
    {"tokens_per_second_per_gpu", &api::Metrics::tokens_per_second_per_gpu},
    {"microbatches_per_second", &api::Metrics::microbatches_per_second},
    {"microbatches_per_second_per_gpu", &api::Metrics::microbatches_per_second_per_gpu},
    {"model_tflops_per_gpu", &api::Metrics::model_tflops_per_gpu},
    {"mfu", &api::Metrics::mfu},
    {"model_tflops_per_gpu_causal", &api::Metrics::model_tflops_per_gpu_causal},
    {"mfu_causal", &api::Metrics::mfu_causal},
    {"hfu", &api::Metrics::hfu},
    {"peak_activation_bytes", &api::Metrics::peak_activation_bytes},
    {"peak_memory_bytes", &api::Metrics::peak_memory_bytes},
    {"capacity_bytes", &api::Metrics::capacity_bytes},
    {"peak_memory_low_bytes", &api::Metrics::peak_memory_low_bytes},
    {"peak_memory_high_bytes", &api::Metrics::peak_memory_high_bytes},
    {"fits", &api::Metrics::fits},
    {"iteration_stddev_seconds", &api::Metrics::iteration_stddev_seconds},
    {"iteration_p05_seconds", &api::Metrics::iteration_p05_seconds},
    {"iteration_p50_seconds", &api::Metrics::iteration_p50_seconds},
    {"iteration_p95_seconds", &api::Metrics::iteration_p95_seconds},
    {"iteration_low_seconds", &api::Metrics::iteration_low_seconds},
    {"iteration_high_seconds", &api::Metrics::iteration_high_seconds},
});

constexpr std::span kRunTable = std::span(kMetrics).first<kRunMetrics>();
static_assert(std::ranges::equal(kMetricFields, kRunTable, {}, &Field<api::Metrics>::name,
                                 &Metric::name));

std::optional<double> number(const std::string& fits) {
  const auto* found = std::ranges::find(kFitNames, fits);
  if (found == kFitNames.end()) return std::nullopt;
  return static_cast<double>(found - kFitNames.begin());
}
std::optional<double> number(std::optional<double> value) { return value; }

}  // namespace

api::Metrics public_metrics(const MetricRow& row) {
  api::Metrics metrics;
  set_all(metrics, kMetricFields, row);
  return metrics;
}

namespace api {

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& field : kMetricFields) names.emplace_back(field.name);
  return names;
}

std::optional<double> metric(const Metrics& metrics, std::string_view name) {
  const auto* found = std::ranges::find(kMetricFields, name, &Field<Metrics>::name);
  if (found == kMetricFields.end()) {
    throw Error(ErrorKind::kInput, fmt::format("unknown metric '{}'{}", name,
                                               suggestion(std::string(name), metric_names())));
  }
  return std::visit([&](auto field) { return number(metrics.*field); }, found->of);
}

}  // namespace api
}  // namespace pipesim
