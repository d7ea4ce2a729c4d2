// The metrics of an order that was found (docs/reference/metrics.md), for every output that has
// them.
#pragma once

#include <array>
#include <string_view>

#include "sim/search/search.h"

namespace pipesim {

struct FoundMetric {
  std::string_view name;
  double (*of)(const Found& found);
};

// An order is evaluated from rest: before it all devices are idle.
inline constexpr auto kFoundMetrics = std::to_array<FoundMetric>({
    {"cost_seconds", [](const Found& found) { return found.cost.value(); }},
    {"makespan_from_rest_seconds", [](const Found& found) { return found.makespan.value(); }},
    {"bubble_rate", [](const Found& found) { return found.bubble_rate; }},
    {"bubble_rate_busiest", [](const Found& found) { return found.bubble_rate_busiest; }},
    {"peak_activation_bytes", [](const Found& found) { return found.peak.value(); }},
});

}  // namespace pipesim
