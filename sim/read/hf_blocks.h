// Layers that each have a shape of their own (`block_configs` of DeciLM: Llama-Nemotron Super and
// Ultra, arXiv 2411.19146).
#pragma once

#include <string>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

// Parts in place of layers: `*` attention, and a letter from `a` on for each size of an MLP.
struct HfBlocks {
  std::string letters;
  std::vector<int> sizes;  // of `a`, `b`, ...
  int heads_of_group = 0;  // query heads that share keys; 0: no layer has attention
};

// An entry of the list has `attention` and `ffn`, either of which may be left out (`no_op`). A size
// is written as `intermediate_size`, or by `ffn_mult` of the width. InputError at what has no
// letters: a matrix in place of a part, groups of several sizes.
HfBlocks blocks_of(const YamlValue& list, long hidden_size);

}  // namespace pipesim
