// Megatron-LM's and MindSpeed's recomputation of activations.
#pragma once

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// Sets draft.recompute; stops at what it cannot say.
void put_recompute(Settings& settings, const MegatronSizes& sizes, Draft& draft);

}  // namespace pipesim
