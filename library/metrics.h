// From rows of the metric table to the public struct.
#pragma once

#include <pipesim/metrics.h>

#include "sim/report/metrics/row.h"

namespace pipesim {

api::Metrics public_metrics(const MetricRow& row);

}  // namespace pipesim
