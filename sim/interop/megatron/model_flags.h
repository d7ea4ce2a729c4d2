// A model's shape as Megatron-LM's flags.
#pragma once

#include <string>
#include <vector>

#include "models/transformer.h"

namespace pipesim {

// Why Megatron-LM has no flags for the model; empty when it has.
std::string why_no_flags(const Transformer& model);

// "--name value". `tensor` ranks divide the vocabulary, which Megatron-LM pads to a multiple of
// theirs; it asks for a number of positions, at least `seq_length`, whatever their embedding. Norms
// after attention and MLP have no flag.
std::vector<std::string> model_flags(const Transformer& model, int tensor, int seq_length);

}  // namespace pipesim
