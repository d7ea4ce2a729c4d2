// Which of a model's layers are what, by Megatron-LM's settings and those of MindSpeed and
// Megatron-DeepSpeed: hybrid patterns, linear attention, windows, experts.
#pragma once

#include <string>

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// The letters of a hybrid model's layers; empty where it is none. Sets sizes.layers_of_stage where
// the pattern says where stages end.
std::string hybrid_pattern(Settings& settings, MegatronSizes& sizes, Draft& draft);

// The kinds of attention of the working layers; `hybrid` as hybrid_pattern gave it.
void put_layer_kinds(Settings& settings, const MegatronSizes& sizes, long hidden,
                     const std::string& hybrid, Draft& draft);

// `ffn`: the size of a dense MLP, which an expert has unless it says otherwise.
void put_experts(Settings& settings, long layers, long ffn, MegatronSizes& sizes, Draft& draft);

}  // namespace pipesim
