// Multiplies each number of a scenario, one at a time, and simulates what becomes of it.
#pragma once

#include <pipesim/metrics.h>
#include <pipesim/scenario.h>
#include <pipesim/simulate.h>
#include <string>
#include <utility>
#include <vector>

namespace pipesim::api {

struct Effect {
  std::string what, key;  // the number, in words and as the scenario's key
  double factor = 1;      // asked for
  double applied = 1;     // differs where the number cannot go so far
  std::string from, to;   // the number in words
  bool runs = false;      // else `refusal` says why not
  Metrics metrics;        // of the changed scenario
  std::string refusal;
};

struct Sensitivity {
  std::string label, schedule, options, recompute, offload, memory_limit;  // as Result's
  Metrics base;
  std::vector<Effect> effects;  // the strongest first
  // Numbers that the scenario does not have, and why.
  std::vector<std::pair<std::string, std::string>> not_applicable;
};

struct Sensitivities {
  std::vector<Sensitivity> schedules;
  std::vector<Refused> refused;  // as Comparison's
  // The document, the table and the text of `pipesim sensitivity`.
  std::string json, csv, text;
};

// Simulates once for each schedule, number and factor. Error as simulate, and for factors outside
// 0.001 to 1000. `watch.progress` counts schedules that can be met.
Sensitivities sensitivity(const Scenario& scenario, const std::vector<double>& factors = {0.5, 2},
                          const Watch& watch = {});

}  // namespace pipesim::api
