// The optimizer's states in the scenario's `memory` section, and activations kept in fewer bits or
// on the host.
#pragma once

#include "models/device_memory.h"
#include "models/layer_context.h"
#include "sim/read/yaml.h"

namespace pipesim {

// Requires what precisions and sharding say to be read before.
void read_optimizer_state(YamlMap& memory, bool bf16_weights, ParameterState& state);

void read_kept_activations(YamlMap& memory, LayerContext& context);

}  // namespace pipesim
