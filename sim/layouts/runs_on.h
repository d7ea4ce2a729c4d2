// Which of a plan's points a training framework runs as they stand.
#pragma once

#include <string>
#include <vector>

#include "sim/interop/configurations/configuration.h"
#include "sim/layouts/space.h"

namespace pipesim {

// By the point alone, before it is run: never true where `configuration_of` would refuse it
// (tests/layouts).
bool may_run(Framework framework, const PlanQuestion& question, const PlanPoint& point);

// Why the framework runs none of the question's points, as a model that it has no flags for; empty
// when it may run some.
std::string why_it_runs_none(Framework framework, const PlanQuestion& question);

// A framework's default, as a setting of a plan: "path", "value".
struct FrameworkDefault {
  std::string path;
  std::string value;
};
std::vector<FrameworkDefault> defaults_of(Framework framework);

}  // namespace pipesim
