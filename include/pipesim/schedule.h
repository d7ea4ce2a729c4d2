// A schedule of one's own: a namespace-scope `const RegisteredSchedule` anywhere in the program
// adds it before main. Scenarios, searches and sweeps know its name from then on.
//
// It is planned by lists of passes (Program) or by a rule (list_schedule).
#pragma once

#include "sim/planning/list_schedule.h"
#include "sim/planning/schedule.h"
