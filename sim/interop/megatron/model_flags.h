// A model's shape as Megatron-LM's flags.
#pragma once

#include <string>

#include "models/transformer.h"
#include "sim/interop/megatron/flag_list.h"

namespace pipesim {

// Why Megatron-LM has no flags for the model; empty when it has.
std::string why_no_flags(const Transformer& model);

// `tensor` ranks divide the vocabulary, which Megatron-LM pads to a multiple of theirs. Megatron-LM
// asks for a number of positions, at least `seq_length`, whatever their embedding. A part without a
// flag becomes a difference, or is left out.
void add_model(const Transformer& model, int tensor, int seq_length, MegatronFlags& to);

}  // namespace pipesim
