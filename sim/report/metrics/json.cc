#include "sim/report/metrics/json.h"

#include <nlohmann/json.hpp>

#include "sim/report/metrics/row.h"

namespace pipesim {

using Json = nlohmann::ordered_json;

Json metric_json(const Metric& metric, std::optional<double> value) {
  if (!value) return nullptr;
  if (metric.unit == MetricUnit::kFlag) return *value != 0;
  if (metric.unit == MetricUnit::kFit) return fit_name(*value);
  if (metric.unit == MetricUnit::kCount) return static_cast<long>(*value);
  return *value;
}

Json metrics_document() {
  Json document = Json::array();
  for (const Metric& metric : kMetrics) {
    document.push_back({{"name", metric.name},
                        {"label", metric.label},
                        {"title", metric.axis()},
                        {"unit", kMetricUnitNames[static_cast<size_t>(metric.unit)]},
                        {"better", static_cast<int>(metric.better)},
                        {"band", kBandRuleNames[static_cast<size_t>(metric.band)]},
                        {"of_all_gpus", metric.of_all_gpus},
                        {"digits", metric.digits},
                        {"definition", metric.definition}});
  }
  return document;
}

std::string metrics_json() {
  std::string text;
  for (const Json& each : metrics_document()) text += (text.empty() ? "[" : ",\n ") + each.dump();
  return text + "]\n";
}

}  // namespace pipesim
