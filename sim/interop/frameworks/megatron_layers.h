// Which of a model's layers are what, by Megatron-LM's settings and those of MindSpeed and
// Megatron-DeepSpeed: hybrid patterns, linear attention, windows, experts.
#pragma once

#include <string>
#include <vector>

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// A list as Megatron-LM's arguments write it: an int N (1: every one, N: every N-th), or a Python
// expression of lists such as ([0]*3+[1]*58). `length` numbers; empty where it is neither.
std::vector<int> frequencies_of(const std::string& text, long length);

// Numbers of a list such as "61,62 63"; other words are left out.
std::vector<long> numbers_of(const std::string& text);

// The letters of a hybrid model's layers; empty where it is none. Sets sizes.layers_of_stage where
// the pattern says where stages end.
std::string hybrid_pattern(Settings& settings, MegatronSizes& sizes, Draft& draft);

// The kinds of attention of the working layers; `hybrid` as hybrid_pattern gave it.
void put_layer_kinds(Settings& settings, const MegatronSizes& sizes, long hidden,
                     const std::string& hybrid, Draft& draft);

// `ffn`: the size of a dense MLP, which an expert has unless it says otherwise.
void put_experts(Settings& settings, long layers, long ffn, MegatronSizes& sizes, Draft& draft);

}  // namespace pipesim
