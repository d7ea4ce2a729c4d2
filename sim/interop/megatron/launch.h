// Scripts that start a training run: environment, torchrun, all flags, and marked places for data,
// tokenizer, checkpoints and learning rate. Unchanged, one trains on made-up tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/case/case.h"
#include "sim/interop/megatron/flag_list.h"

namespace pipesim {

// The ranks of all replicas.
LaunchRanks ranks_of(const Case& made);
// "64 GPUs of dgx-h100, data parallel size 8"
std::string ranks_text(const LaunchRanks& ranks);

// Parts of every such script. The first sets variables for nodes, ranks, address and the
// framework's folder, named `folder`. The second has the same as the arrays NODES and ADDRESS of
// torchrun's options.
std::string launch_places(const LaunchRanks& ranks, std::string_view folder);
std::string launch_arrays();

// Lines of bash, "export NAME=value" or "unset NAME", without which Megatron-LM refuses these
// flags.
std::vector<std::string> environment_of(const MegatronFlags& flags);

// A script for Megatron-LM, or for sail-sg's fork. Requires flags of a case with a model. A flag is
// a line.
std::string launch_script(const MegatronFlags& flags);

}  // namespace pipesim
