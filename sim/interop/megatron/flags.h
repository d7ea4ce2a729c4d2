// A schedule as the command-line flags with which Megatron-LM, or sail-sg's zero-bubble fork of it,
// runs it.
//
// The table of flags.cc has a line per schedule that one of the two has; any other is
// refused, a new one too until it has a line. Flags were checked against NVIDIA/Megatron-LM
// (megatron/training/arguments.py and its documentation) and
// sail-sg/zero-bubble-pipeline-parallelism (README.md, megatron/core/zbpp_utils.py, examples/).
#pragma once

#include <string>
#include <vector>

#include "sim/case/case.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct MegatronFlags {
  std::string runtime;             // whose flags they are
  std::vector<std::string> flags;  // "--name value"
  std::vector<std::string> notes;  // what flags do not say: what remains to be set, what differs
};

// Throws InfeasibleError when neither runtime has flags for the case, whose program this is: why,
// and which schedules have some.
MegatronFlags megatron_flags(const Case& made, const Program& program);

// Notes as comments, then a flag per line.
std::string megatron_text(const MegatronFlags& flags);

// The schedules of the table, by name.
std::vector<std::string> megatron_schedules();

}  // namespace pipesim
