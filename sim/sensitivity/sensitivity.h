// Which numbers of a scenario matter: each is multiplied by a few factors, one at a time, and the
// schedule is planned and simulated again.
//
// Factors are of the value: half a bandwidth, twice a latency, half the speed of a device. Where a
// balance of layers is asked for it is found again. Nothing is estimated: every row is a simulation
// of the changed scenario, by the engine that the scenario names; of an ensemble the means count.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/case/case.h"
#include "sim/report/metrics/row.h"

namespace pipesim {

// The metrics that are compared; throughput is the measure where the number of microbatches
// changes.
inline constexpr std::array<std::string_view, 7> kOutcomeMetrics{
    "iteration_seconds",     "microbatches_per_second", "bubble_rate", "bubble_rate_busiest",
    "peak_activation_bytes", "peak_memory_bytes",       "fits"};

struct Outcome {
  MetricRow metrics{};

  // A metric of a run, by its name.
  [[nodiscard]] std::optional<double> operator[](std::string_view name) const {
    return metric(metrics, name);
  }
  // All memory with a model, else activations.
  [[nodiscard]] const char* peak() const {
    return (*this)["peak_memory_bytes"] ? "peak_memory_bytes" : "peak_activation_bytes";
  }
};

struct Effect {
  std::string_view what;  // WhatIf::name
  std::string_view key;   // WhatIf::key
  double factor = 1;      // asked for
  double applied = 1;     // ValueChange::applied, else the factor
  std::string from;       // the value in words, before and after
  std::string to;
  std::optional<Outcome> outcome;  // nothing where the changed scenario cannot be run:
  std::string refusal;             // why
};

struct NotApplicable {
  std::string_view what;
  std::string reason;
};

struct Sensitivity {
  ChoiceColumns choice{};
  std::string label;  // as Case's
  Outcome base;
  // Effects by their change of throughput, then of the peak, whatever the factor; ties in the order
  // of what_ifs(). The factors of one value are adjacent, in their order.
  std::vector<Effect> effects;
  std::vector<NotApplicable> not_applicable;
};

// Requires factors > 0. Throws what simulate throws of the case. Simulates once, and
// once per factor and value that the scenario has.
Sensitivity sensitivity_of(const Case& made, std::span<const double> factors);

}  // namespace pipesim
