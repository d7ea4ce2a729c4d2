// A plan as a page shows it: the document of `pipesim plan --json`, checked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/report/html/inputs.h"

namespace pipesim {

// A row of the page: of every plan its layouts, the fastest first, then its baseline.
struct PlanRow {
  std::string scenario;              // what `pipesim run` takes; empty where the document has none
  std::vector<std::string> runs_on;  // names of frameworks
  bool drawn = false;                // its timeline stands in the page
};

// InputError at the input when a value is not what the page takes it for.
void check_plan(const ReportInput& input, const nlohmann::ordered_json& document);

// Drawn are every plan's first layout, its baseline, and the layouts that hold less memory than all
// before them. At most kMostDrawnRows are drawn in all. Requires a document that check_plan takes.
std::vector<PlanRow> rows_of_plan(const nlohmann::ordered_json& document);
inline constexpr int kMostDrawnRows = 8;

}  // namespace pipesim
