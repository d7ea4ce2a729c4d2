// The result document of `pipesim run --json` (design, section 8): one object, the same bytes for
// the same input. What does not apply is null, never 0.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/scenario/scenario.h"
#include "sim/scenario/simulate.h"

namespace pipesim {

struct JsonOptions {
  std::string version;
  bool timings = false;  // adds wall-clock "seconds", which differ from run to run
};

void write_json(std::ostream& out, const Scenario& scenario,
                std::span<const Simulation> simulations, const JsonOptions& options);

}  // namespace pipesim
