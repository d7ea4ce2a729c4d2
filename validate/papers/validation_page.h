// All comparisons with published figures on one page, and as one drawing.
#pragma once

#include <string>
#include <vector>

#include "validate/papers/expected.h"
#include "validate/papers/validation.h"

namespace pipesim {

// Markdown: a line per table beside the error that is recorded of it, what is not modelled and why,
// every cell, and `where_from`, a text of one's own. Refers to the drawing as validation.svg.
std::string validation_page(const std::vector<Compared>& all,
                            const std::optional<ExpectedErrors>& expected,
                            const std::string& where_from);

// SVG of two panels: simulated against published, of every cell above zero, on logarithmic axes;
// and by table, the errors of those cells whose errors are shares.
std::string validation_drawing(const std::vector<Compared>& all);

}  // namespace pipesim
