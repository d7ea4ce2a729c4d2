// The columns of a schedule choice as members of a JSON object.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/choice_columns.h"

namespace pipesim {

// Null where a column is empty; a number where a memory limit is one.
void add_choice(nlohmann::ordered_json& json, const ChoiceColumns& choice);

}  // namespace pipesim
