// A schedule as the command-line flags with which Megatron-LM, or sail-sg's zero-bubble fork of it,
// runs it.
//
// A schedule's record says which of the two runs it (Schedule::runs_on), a line of flags.cc with
// which flags. Any other is refused, with the record's reason if it gives one. Flags were checked
// against NVIDIA/Megatron-LM (megatron/training/arguments.py and its documentation) and
// sail-sg/zero-bubble-pipeline-parallelism (README.md, megatron/core/zbpp_utils.py, examples/).
#pragma once

#include <string>
#include <vector>

#include "sim/case/case.h"
#include "sim/interop/megatron/flag_list.h"
#include "sim/pipeline/program.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// Throws InfeasibleError when neither runtime has flags for the case, whose program this is: why,
// and which schedules have some.
MegatronFlags megatron_flags(const Case& made, const Program& program);

// With a model a script that starts (launch.h); else notes as comments, then a flag per line.
std::string megatron_text(const MegatronFlags& flags);

// True if the flags can limit the schedule's memory; otherwise a case with a limit is refused.
bool flags_take_limit(const Schedule& schedule);

// The schedules that one of them runs, by name.
std::vector<std::string> megatron_schedules();

}  // namespace pipesim
