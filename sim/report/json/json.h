// The result document of `pipesim run --json` (docs/reference/json.md): one object, the same bytes
// for the same input. A number that does not apply is null, never 0.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// A schedule of a comparison that cannot be met, and why.
struct RefusedSchedule {
  std::string schedule;
  std::string reason;
};

struct JsonOptions {
  std::string version;
  bool timings = false;  // adds wall-clock "seconds", which differ from run to run
  std::vector<RefusedSchedule> refused = {};  // adds "refused" where there are any
};

void write_json(std::ostream& out, const Scenario& scenario,
                std::span<const Simulation> simulations, const JsonOptions& options);

}  // namespace pipesim
