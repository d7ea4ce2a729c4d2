// The result document of `pipesim run --json` (docs/reference/json.md): one object, the same bytes
// for the same input. A number that does not apply is null, never 0.
#pragma once

#include <iosfwd>
#include <span>

#include "sim/report/json/document.h"

namespace pipesim {

void write_json(std::ostream& out, std::span<const Answer> answers, const JsonOptions& options);

}  // namespace pipesim
