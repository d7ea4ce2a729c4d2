// A simulation's tasks for Python.
#pragma once

#include <memory>

#include "python/bindings.h"
#include "sim/case/simulate.h"

namespace pipesim {

class Tasks;

// Requires a result with a timeline, which lives as long as a column of it.
std::shared_ptr<Tasks> tasks_of(std::shared_ptr<const Result> result);

}  // namespace pipesim
