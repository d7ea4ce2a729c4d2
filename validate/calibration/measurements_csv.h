// Measurements as CSV files, written and read back.
//
// measurements.csv opens with comment lines: the schema, `# name: value` for every fact, and
// `# not_measured: what: reason`. Then one line per point with all but its samples; the units are
// in the column names, parameters are `name=value` with blanks between. samples.csv holds every
// sample by the point's key. Errors: InputError with file and line for a file that cannot be read,
// std::ios_base::failure when writing fails.
#pragma once

#include <iosfwd>
#include <string>

#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

void write_measurements(const Measurements& measured, std::ostream& out);
void write_samples(const Measurements& measured, std::ostream& out);

// Clocks and samples are not read back.
[[nodiscard]] Measurements read_measurements(const std::string& path);

}  // namespace pipesim::calibration
