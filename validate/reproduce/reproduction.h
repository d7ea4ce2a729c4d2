// A figure's result: a table of our points beside the published ones, the two tables that it is
// drawn from, and how far they are apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/papers/expected.h"
#include "validate/reproduce/figure.h"
#include "validate/reproduce/points.h"

namespace pipesim::reproduce {

// A row per point: panel, series, fields, and of every quantity ours and, as published_NAME, theirs
// where any is known. Cells are empty where nothing is.
std::string beside_csv(const Points& points);

// Tables as `pipesim plot` takes them: panel, series, what stands on axes, and fits. A
// panel without published points says so in its name. Empty where there is no such point.
std::string ours_csv(const Figure& figure, const Points& points);
std::string published_csv(const Figure& figure, const Points& points);

// "controllable-memory/figure7: mfu: median 2.9% off over 24 points, 4.5% at most (9.6B, V-ZB);
// ..."
std::string sentence(const Figure& figure, const Points& points);

// A sentence for every panel that is further off than the worst recorded of its tables, or of whose
// tables nothing is recorded.
std::vector<std::string> beyond_recorded(const Figure& figure, const Points& points,
                                         const std::optional<ExpectedErrors>& expected);

}  // namespace pipesim::reproduce
