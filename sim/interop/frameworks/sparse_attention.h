// Sparse and compressed attention and residual streams, as MindSpeed and Primus name them
// (DeepSeek-V3.2, DeepSeek-V4, GLM-5).
#pragma once

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// Where compressed attention is on, says its heads, their sizes, positions and sinks by
// Megatron-LM's settings.
void rename_compressed_attention(Settings& settings);
// Puts an indexer, compression and the layers' pattern where the settings enable them.
void put_sparse_attention(Settings& settings, const MegatronSizes& sizes, Draft& draft);
// Hyper-connections, and residuals of earlier layers that are weighed (Kimi K3).
void put_residual_streams(Settings& settings, Draft& draft);

}  // namespace pipesim
