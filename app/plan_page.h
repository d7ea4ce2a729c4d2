// The page of a plan.
#pragma once

#include <string>

#include "app/command_line.h"
#include "sim/report/html/html.h"

namespace pipesim {

// Runs the scenario of a row, and writes configurations for the frameworks that run it. A scenario
// that cannot be read here, for example for a missing file, gives its reason instead.
void add_planned_row(HtmlReport& report, size_t row);
// The same for all drawn rows.
void add_planned_rows(HtmlReport& report);

// The page of a document of `pipesim plan --json` for this command line.
std::string plan_page(const std::string& document, const CommandLine& line);

}  // namespace pipesim
