// Models that encode one sequence and decode another: Megatron-LM's pretrain_t5.py, and NeMo's T5,
// mT5, UL2 and BART.
#pragma once

#include <optional>

#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/megatron_sizes.h"

namespace pipesim {

// Puts how many layers encode, and the tokens that the others decode. Gives back all layers;
// nothing for other models. Asks for the layers where no setting says them.
std::optional<long> put_encoder_decoder(Settings& settings, MegatronSizes& sizes, Draft& draft);
bool encodes_and_decodes(const Settings& settings);
// Likewise of a model by name: its tokens that are decoded, where a setting says others.
void put_decoded_tokens(Settings& settings, const Transformer& model, Draft& draft);

// The stages of both parts, once `sizes` has their layers. Asks for the first stage that decodes
// where no setting says it; stops at what Megatron-LM refuses.
void divide_stages(Settings& settings, MegatronSizes& sizes, Draft& draft);

// Attends with Megatron-LM's own kernels, as it did before Transformer Engine had such layers.
bool has_layers_of_its_own(Settings& settings, const MegatronSizes& sizes);

}  // namespace pipesim
