// The schedule that Megatron-LM's settings select, or those of sail-sg's zero-bubble fork: the
// reverse of sim/interop/megatron/flags.cc.
#pragma once

#include "sim/interop/frameworks/megatron_model.h"

namespace pipesim {

// Sets `sizes.chunks`, `sizes.layout` and `sizes.zero_bubble` too.
void put_schedule(Settings& settings, MegatronSizes& sizes, Draft& draft);

}  // namespace pipesim
