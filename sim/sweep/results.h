// The tables that a sweep leaves for people and other programs: results.csv, failed.csv and JSON,
// in the order of points, written from the store.
//
// Tables of a sweep that was stopped are called results.partial.csv and failed.partial.csv, so that
// nobody takes them for the whole.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/sweep/run_sweep.h"
#include "sim/sweep/store.h"
#include "sim/sweep/sweep.h"

namespace pipesim {

// Path of the table "results" or "failed".
std::string table_path(const std::string& folder, const std::string& table, bool stopped);
// True if the folder has partial tables only.
bool was_stopped(const std::string& folder);

// A column for every swept key: its name, or `sweep.NAME` where a column of the choice has that
// name (choice_columns.h). `sweep.offload` is the file's value, `offload` the point's.
std::vector<std::string> key_columns(const Sweep& sweep);

// `point`, the swept keys, the choice and the metrics of a run: a row for every point that
// has them.
void write_results_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store);
// `point`, the swept keys, the choice and `reason`: a row for every other point.
void write_failed_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost);
// Both as one document; numbers and null where the CSV has digits and nothing. `stopped` is true
// where points are still to be evaluated.
void write_sweep_json(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const SweepRun& run, const std::string& version);

}  // namespace pipesim
