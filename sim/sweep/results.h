// What a sweep leaves for people and other programs: results.csv, failed.csv and JSON, in the order
// of points, written from the store.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

#include "sim/sweep/store.h"
#include "sim/sweep/sweep.h"

namespace pipesim {

// Points that have no result, and why (SweepRun::lost).
using LostPoints = std::map<std::uint32_t, std::string>;

// `point`, a column for every swept key, `schedule`, and the metrics (metric_row.h): a row for
// every point that has them.
void write_results_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store);
// `point`, the keys, `schedule` and `reason`: a row for every other point.
void write_failed_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost);
// Both as one document; numbers and null where the CSV has digits and nothing.
void write_sweep_json(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost, const std::string& version);

}  // namespace pipesim
