// Metrics in JSON: their values, and the table itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/report/metrics/metric.h"

namespace pipesim {

// A number, of a flag true or false, null for nothing.
nlohmann::ordered_json metric_json(const Metric& metric, std::optional<double> value);

// The table as a document, for scripts that draw; as text, an entry a line.
nlohmann::ordered_json metrics_document();
std::string metrics_json();

}  // namespace pipesim
