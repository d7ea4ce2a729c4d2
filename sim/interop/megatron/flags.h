// A schedule as the command-line flags with which Megatron-LM, or sail-sg's zero-bubble fork of it,
// runs it.
//
// The table of megatron_flags.cc has a line per schedule that one of the two has; any other is
// refused, a new one too until it has a line. Flags were checked against NVIDIA/Megatron-LM
// (megatron/training/arguments.py and its documentation) and
// sail-sg/zero-bubble-pipeline-parallelism (README.md, megatron/core/zbpp_utils.py, examples/).
#pragma once

#include <string>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

struct MegatronFlags {
  std::string runtime;             // whose flags they are
  std::vector<std::string> flags;  // "--name value"
  std::vector<std::string> notes;  // what flags do not say: what remains to be set, what differs
};

// Throws InfeasibleError when neither runtime has flags for the choice: why, and which schedules
// have some. `problem` and `program` are those that the scenario and the choice make.
MegatronFlags megatron_flags(const Scenario& scenario, const ScheduleChoice& choice,
                             const Problem& problem, const Program& program);

// Notes as comments, then a flag per line.
std::string megatron_text(const MegatronFlags& flags);

// The schedules of the table, by name.
std::vector<std::string> megatron_schedules();

}  // namespace pipesim
