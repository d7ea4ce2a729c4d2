// Models that a script names by the specification of their layers (--spec), beside settings of
// sizes that are Megatron-LM's.
#pragma once

#include <string>

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// A specification, beside the settings.
struct LayerSpec {
  bool output_gate = false;      // attention's output is weighed (Qwen3-Next)
  bool mamba = false;            // all layers are Mamba's
  std::string mixer = "mamba2";  // linear_attention.kind of a hybrid pattern's layers M
  // Two layers around experts that work beside the second (LongCat-Flash).
  bool shortcut_experts = false;
};

// The one that the settings name; stops at one that is not known.
LayerSpec layer_spec(Settings& settings, Draft& draft);

// The letters of layers that the specification alone says; empty: the settings say them.
std::string spec_pattern(const LayerSpec& spec, long layers, MegatronSizes& sizes);

}  // namespace pipesim
