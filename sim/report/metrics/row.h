// The numbers of one simulation as a row, and a metric's value as text.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/report/metrics/table.h"
#include "sim/scenario/choice_columns.h"

namespace pipesim {

// The metrics of a run: the columns of `run --csv` and of a sweep.
inline constexpr size_t kRunMetrics = [] {
  size_t count = 0;
  while (count < kMetrics.size() && kMetrics[count].of != nullptr) ++count;
  return count;
}();
inline std::span<const Metric> run_metrics() { return std::span(kMetrics).first(kRunMetrics); }

// LogicError for a name that is none.
const Metric& metric_named(std::string_view name);
// Nothing for a name that is none.
const Metric* find_metric(std::string_view name);

// In the order of run_metrics(); nothing where one does not apply.
using MetricRow = std::array<std::optional<double>, kRunMetrics>;
MetricRow metrics_of(const Scenario& scenario, const Result& result);
// LogicError for a name that is none of a run.
std::optional<double> metric(const MetricRow& row, std::string_view name);

// For people: "18.522 ms", "12.34%", "3.70 GiB", "yes"; "-" for nothing. `significant` limits the
// digits of a number that a band makes uncertain.
std::string metric_text(const Metric& metric, std::optional<double> value,
                        std::optional<int> significant = {});
// The fewest digits that read back as the same number, or the name of a MemoryFit; empty for
// nothing.
std::string metric_field(const Metric& metric, std::optional<double> value);
// "yes", "tight" or "no" of a metric whose unit is MetricUnit::kFit.
std::string_view fit_name(double value);

// ",name,name" and ",value,value", behind the first columns of a CSV.
std::string metric_header();
std::string metric_fields(const MetricRow& metrics);

// "schedule,options,..." and the columns of a choice (choice_columns.h).
std::string choice_header();
std::string choice_fields(const ChoiceColumns& choice);

// docs/reference/metrics.md.
std::string metrics_page();

}  // namespace pipesim
