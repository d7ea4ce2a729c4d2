// The split of layers that Vocabulary Parallelism calls Redis (arXiv 2411.05288, section 6).
//
// The last stage keeps the fewest layers with which it computes, output included, at least what the
// mean stage does. It keeps none where the output alone does so. The other stages share the rest,
// the later ones taking what does not divide, as the public code's --final-stage-num-layers has it.
// All eight splits of the public runs are met. The paper says only that FLOPs are estimated as in
// Narayanan 2021 and the longest stage is kept short. Pure functions. O(stages).
#pragma once

#include <vector>

#include "models/layout.h"
#include "models/transformer.h"

namespace pipesim {

// Decoder layers of every stage, `last` of them on the last one. Requires two stages or more and
// 0 <= last <= layers.
std::vector<int> split_with_last(int layers, int last, int stages);

// FLOPs as in model_flops, all of attention counted; layers of several kinds weigh their mean.
Layout redistributed_layout(const Transformer& model, int seq_length, int stages);

}  // namespace pipesim
