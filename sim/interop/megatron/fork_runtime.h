// Demands of sail-sg/zero-bubble-pipeline-parallelism beside a schedule's own flags, and the parts
// of Megatron-LM that it lacks (its megatron/core/zbpp_utils.py and pipeline_parallel_runtime.md).
#pragma once

#include <string>

#include "sim/interop/megatron/flag_list.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Completes the flags, "--name value", with those of its runtime, and says what differs. Returns
// why it cannot run them, or an empty string.
std::string add_fork_runtime(const Scenario& scenario, MegatronFlags& to);

}  // namespace pipesim
