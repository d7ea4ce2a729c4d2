// A job file of torchtitan's releases as a command line for its head (b5bcd76), which reads no job
// files. It names a configuration of the registry and the job file's changes to it.
#pragma once

#include <string>

#include "sim/case/case.h"

namespace pipesim {

// Why head does not run what the job file says; empty where it does.
std::string why_not_torchtitan_head(const Case& made);

// A script, as launch_script of sim/interop/megatron writes one. Requires a case that torchtitan
// runs, whose job file is `job`, and that head runs.
std::string torchtitan_head_script(const Case& made, const std::string& job);

}  // namespace pipesim
