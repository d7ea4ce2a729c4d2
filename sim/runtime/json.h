// Executions as JSON (docs/reference/json.md).
#pragma once

#include <iosfwd>
#include <span>

#include "sim/runtime/execution.h"

namespace pipesim::runtime {

// One execution is an object, several are a list of them.
void write_json(std::ostream& out, std::span<const Execution> executions);

}  // namespace pipesim::runtime
