// Sparse attention as MindSpeed names it (DeepSeek-V3.2, GLM-5).
#pragma once

#include "sim/interop/frameworks/draft.h"

namespace pipesim {

// Puts an indexer and the pattern of `layers` layers where the settings enable one.
void put_sparse_attention(Settings& settings, long layers, Draft& draft);

}  // namespace pipesim
