// A model's division, memory and computation as flags of Megatron-LM or its fork. Flags cover
// tensor, context and expert ranks, sharding, the optimizer's state, precision, fused kernels,
// recomputed modules and overlapped collectives.
#pragma once

#include "sim/case/case.h"
#include "sim/interop/megatron/flag_list.h"

namespace pipesim {

// Requires a case with a model. `validates`: the optimizer's step is validated afterwards, which
// needs fp16. A setting without a flag becomes a difference. O(layers).
void add_setting(const Case& made, bool validates, MegatronFlags& to);

}  // namespace pipesim
