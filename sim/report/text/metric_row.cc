#include "sim/report/text/metric_row.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "sim/core/error.h"
#include "sim/report/text/csv.h"
#include "sim/scenario/gpus.h"

namespace pipesim {

MetricRow metrics_of(const Scenario& scenario, const Result& result) {
  const Report& report = result.report;
  const Throughput rate = result.throughput.value_or(Throughput{});
  const bool rated = result.throughput.has_value();
  const auto where = [](bool known, double value) {
    return known ? std::optional(value) : std::nullopt;
  };
  const auto seconds = [&report](Seconds Ensemble::*of) {
    return report.ensemble ? std::optional((*report.ensemble.*of).value()) : std::nullopt;
  };
  const auto end_of_band = [&](double Band::*end) {
    const auto& band = scenario.band;
    return band ? std::optional(*band.*end * report.iteration.value()) : std::nullopt;
  };
  const bool limited = scenario.modelled && scenario.modelled->capacity;
  const double length = scenario.batch.seq_length.value_or(0);
  const auto gpus = static_cast<double>(gpus_of(scenario.parallel));
  return {gpus,
          report.iteration.value(),
          report.makespan.value(),
          report.cost.value(),
          report.bubble_rate,
          report.bubble_rate_busiest,
          report.bubble_rate_makespan,
          report.bubble_over_ideal,
          where(rated, rate.samples_per_second),
          where(rated, rate.samples_per_second_per_gpu),
          scenario.batch.microbatches * scenario.parallel.data / report.iteration.value() / gpus,
          where(knows_memory(scenario), report.peak_activation.value()),
          where(report.peak_memory.has_value(), report.peak_memory.value_or(Bytes(0)).value()),
          where(rated && length > 0, length * rate.samples_per_second_per_gpu),
          rate.model_tflops_per_gpu,
          rate.mfu,
          rate.model_tflops_per_gpu_causal,
          rate.mfu_causal,
          rate.hfu,
          where(result.fits.has_value(), result.fits.value_or(false) ? 1 : 0),
          seconds(&Ensemble::stddev),
          seconds(&Ensemble::p05),
          seconds(&Ensemble::p95),
          end_of_band(&Band::low),
          end_of_band(&Band::high),
          where(limited, limited ? scenario.modelled->capacity->value() : 0)};
}

std::optional<double> metric(const MetricRow& row, std::string_view name) {
  const auto* const found = std::ranges::find(kMetricNames, name);
  if (found == kMetricNames.end()) throw LogicError(fmt::format("no metric '{}'", name));
  return row[std::distance(kMetricNames.begin(), found)];
}

std::string metric_header() {
  std::string text;
  for (const std::string_view name : kMetricNames) text += fmt::format(",{}", name);
  return text;
}

std::string metric_fields(const MetricRow& metrics) {
  std::string text;
  for (const auto& value : metrics) text += value ? fmt::format(",{}", *value) : ",";
  return text;
}

std::string choice_header() { return fmt::format("{}", fmt::join(kChoiceColumns, ",")); }

std::string choice_fields(const ChoiceColumns& choice) {
  std::string text;
  for (const std::string& each : choice) {
    if (&each != &choice.front()) text += ',';
    text += csv_field(each);
  }
  return text;
}

}  // namespace pipesim
