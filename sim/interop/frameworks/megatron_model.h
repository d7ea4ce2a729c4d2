// The part of Megatron-LM's settings that is the model.
#pragma once

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// A script with a flag that epfLLM's Megatron-LLM alone has.
bool is_of_megatron_llm(const Settings& settings);

// Nothing is put where the settings name no layers: a model's scenario then needs another source.
void put_model(Settings& settings, MegatronSizes& sizes, Draft& draft);

}  // namespace pipesim
