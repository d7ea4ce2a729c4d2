// A sweep as a page shows it: its tables as columns, and the text of the scenario behind a point.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/report/html/inputs.h"

namespace pipesim {

// {folder, stopped, scenario, cost, schedules, keys, columns, failed}. A column is {name, values}:
// numbers, null where a cell is empty, or texts. InputError when results.csv or failed.csv is no
// table of a sweep: columns `point`, the swept keys, `schedule`, then metrics or `reason`.
nlohmann::ordered_json sweep_json(const SweepFolder& sweep);

}  // namespace pipesim
