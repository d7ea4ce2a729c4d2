// Which numbers of a scenario matter: each is multiplied by a few factors, one at a time, and the
// schedule is planned and simulated again.
//
// Factors are of the value: half a bandwidth, twice a latency, half the speed of a device. Where a
// balance of layers is asked for it is found again. Nothing is estimated: every row is a simulation
// of the changed scenario, by the engine that the scenario names; of an ensemble the means count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/case/case.h"
#include "sim/core/units.h"

namespace pipesim {

struct Outcome {
  Seconds iteration;
  double microbatches_per_second = 0;  // of one pipeline: the measure where their number changes
  double bubble_rate = 0;
  double bubble_rate_busiest = 0;
  std::optional<Bytes> peak_activation;  // where bytes are known
  std::optional<Bytes> peak_memory;      // with a model
  std::optional<bool> fits;              // with a model and a capacity, the scenario's or its GPU's

  [[nodiscard]] std::optional<Bytes> peak() const {
    return peak_memory ? peak_memory : peak_activation;
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
  std::string schedule;  // label_of
  Outcome base;
  // What moves throughput most comes first, then what moves the peak most, whatever the factor;
  // ties in the order of what_ifs(). The factors of one value stand together in their order.
  std::vector<Effect> effects;
  std::vector<NotApplicable> not_applicable;
};

// Requires factors > 0. Throws what simulate throws of the case. Simulates once, and
// once per factor and value that the scenario has.
Sensitivity sensitivity_of(const Case& made, std::span<const double> factors);

}  // namespace pipesim
