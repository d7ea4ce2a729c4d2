#include "sim/report/metrics/row.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/report/text/band.h"

namespace pipesim {

const Metric* find_metric(std::string_view name) {
  const auto* const found = std::ranges::find(kMetrics, name, &Metric::name);
  return found == kMetrics.end() ? nullptr : found;
}

const Metric& metric_named(std::string_view name) {
  const Metric* found = find_metric(name);
  if (found == nullptr) throw LogicError(fmt::format("no metric '{}'", name));
  return *found;
}

MetricRow metrics_of(const Scenario& scenario, const Result& result) {
  MetricRow row;
  for (size_t i = 0; i < row.size(); ++i) row[i] = kMetrics[i].of(scenario, result);
  return row;
}

std::optional<double> metric(const MetricRow& row, std::string_view name) {
  const auto at = static_cast<size_t>(&metric_named(name) - kMetrics.data());
  if (at >= row.size()) throw LogicError(fmt::format("'{}' is no metric of a run", name));
  return row[at];
}

std::string metric_text(const Metric& metric, std::optional<double> value,
                        std::optional<int> digits) {
  if (!value) return "-";
  const bool uncertain = digits && metric.band != BandRule::kNone;
  const auto number = [&](double of) {
    return uncertain ? significant(of, *digits) : fmt::format("{:.{}f}", of, metric.digits);
  };
  switch (metric.unit) {
    case MetricUnit::kSeconds:
      return uncertain ? human(Seconds(*value), *digits) : human(Seconds(*value));
    case MetricUnit::kBytes:
      return human(Bytes(*value));
    case MetricUnit::kShare:
      return number(100 * *value) + "%";
    case MetricUnit::kFlag:
      return *value != 0 ? "yes" : "no";
    case MetricUnit::kFit:
      return std::string(fit_name(*value));
    default:
      return number(*value);
  }
}

std::string_view fit_name(double value) { return kFitNames.at(static_cast<size_t>(value)); }

std::string metric_field(const Metric& metric, std::optional<double> value) {
  if (!value) return "";
  if (metric.unit == MetricUnit::kFit) return std::string(fit_name(*value));
  return fmt::format("{}", *value);
}

std::string metric_header() {
  std::string text;
  for (const Metric& metric : run_metrics()) text += fmt::format(",{}", metric.name);
  return text;
}

std::string metric_fields(const MetricRow& metrics) {
  std::string text;
  for (size_t i = 0; i < metrics.size(); ++i) {
    text += ',' + metric_field(run_metrics()[i], metrics[i]);
  }
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

std::string metrics_page() {
  static constexpr std::array<std::string_view, 3> kRules{"", "yes", "yes, reversed"};
  static constexpr std::array<std::string_view, 3> kBetter{"less", "", "more"};
  std::string text =
      "# Metrics\n\nMade by `pipesim list metrics --format markdown` from "
      "sim/report/metrics/table.h, "
      "which CSV, JSON, tables, pages,\nfigures and Python read. A number that does not apply is "
      "an "
      "empty cell, or null. [The model](model.md) says more of each\n(\"Time\", \"Bubble\", "
      "\"Memory\"). Band: whether the band of `iteration_seconds` is one of the metric too.\n";
  const auto add = [&text](std::string_view title, std::span<const Metric> metrics) {
    text += fmt::format(
        "\n## {}\n\n| name | unit | in tables | definition | better | band |\n"
        "|---|---|---|---|---|---|\n",
        title);
    for (const Metric& metric : metrics) {
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", metric.name,
                          kMetricUnitNames[static_cast<size_t>(metric.unit)], metric.label,
                          metric.definition,
                          kBetter[static_cast<size_t>(static_cast<int>(metric.better) + 1)],
                          kRules[static_cast<size_t>(metric.band)]);
    }
  };
  add("Runs", run_metrics());
  add("Searches and plans", std::span(kMetrics).subspan(kRunMetrics));
  return text;
}

}  // namespace pipesim
