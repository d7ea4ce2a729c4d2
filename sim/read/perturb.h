// The key `perturb` of a scenario: what changes the run and not the plan.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Requires parallel sizes and engine to be read, which say what ranks there are and whether a
// slow-down may come later.
Perturbation read_perturb(const YamlValue& value, const Scenario& scenario);

}  // namespace pipesim
