// Inputs of a page besides scenarios: files that a person named.
#pragma once

#include <string>

#include "sim/core/error.h"

namespace pipesim {

// A file that a person named, and what it holds.
struct ReportInput {
  std::string path;
  std::string text;
};

// The files that `pipesim sweep` leaves in its folder.
struct SweepFolder {
  std::string path;
  ReportInput results, failed, scenario;  // results.csv, failed.csv, sweep.yaml
  bool stopped = false;                   // the tables are of a part of it
};

// InputError at `asked` when the file cannot be read.
ReportInput read_report_input(const std::string& path, const Location& asked);

}  // namespace pipesim
