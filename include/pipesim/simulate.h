// From a scenario to results: prepare_first or prepare_all makes a Case of each schedule, simulate
// makes a Result of a case. Its Report has the numbers (docs/reference/model.md defines them).
//
// InputError: the scenario asks for what its schedule does not take. InfeasibleError: a limit
// cannot be met. All are values; the same scenario gives the same numbers to the last bit. Calls
// from several threads do not disturb each other as long as each makes its own engine.
#pragma once

#include "sim/case/simulate.h"
#include "sim/metrics/report.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
