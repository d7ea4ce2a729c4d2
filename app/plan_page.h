// The page of a plan.
#pragma once

#include <string>

#include "app/command_line.h"
#include "sim/report/html/html.h"

namespace pipesim {

// Runs the scenario of a row, and writes the configurations of what runs it. A scenario that cannot
// be read here, as where a file that it names is missing, gives its reason instead.
void add_planned_row(HtmlReport& report, size_t row);
// The same, of all rows that are drawn.
void add_planned_rows(HtmlReport& report);

// The page of what `pipesim plan --json` writes for this command line.
std::string plan_page(const std::string& document, const CommandLine& line);

}  // namespace pipesim
