// Megatron-LM's flags as fields of Megatron-Bridge's configuration.
#pragma once

#include <string>

#include "sim/interop/megatron/flags.h"

namespace pipesim {

// YAML over a recipe of the same model: sections model, train, ddp, comm_overlap and
// mixed_precision. The model's shape is the recipe's and is left out. Requires flags of
// Megatron-LM.
std::string bridge_text(const MegatronFlags& flags);

}  // namespace pipesim
