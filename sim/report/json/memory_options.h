// The options of a modelled memory that are not what frameworks do unless asked: JSON has those
// that differ alone.
#pragma once

#include <nlohmann/json.hpp>

#include "models/device_memory.h"
#include "models/layer_context.h"

namespace pipesim {

void add_optimizer_state(const OptimizerState& state, nlohmann::ordered_json& memory);
void add_kept_activations(const LayerContext& context, nlohmann::ordered_json& memory);

}  // namespace pipesim
