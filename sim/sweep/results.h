// What a sweep leaves for people and other programs: results.csv, failed.csv and JSON, in the order
// of points, written from the store; and results.csv read again.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/report/metric_row.h"
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

// A row of results.csv.
struct SweepRow {
  std::uint32_t point = 0;
  std::vector<std::string> values;  // of the swept keys
  std::string schedule;
  MetricRow metrics{};
};
struct SweepTable {
  std::vector<std::string> keys;
  std::vector<SweepRow> rows;
};

// InputError with the line, for a file that cannot be read (at `asked`) or that has other columns.
// Metrics that the file does not have are empty.
SweepTable read_results_csv(const std::string& path, const Location& asked);

}  // namespace pipesim
