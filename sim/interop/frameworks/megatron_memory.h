// Megatron-LM's arguments for memory, as keys of `memory`: precision and place of the optimizer's
// states, and activations kept in fp8 or on the host.
#pragma once

#include "sim/interop/frameworks/draft.h"

namespace pipesim {

// `bf16_weights`: Transformer Engine keeps of their fp32 copy what they lack, unless told
// otherwise.
void put_optimizer_state(Settings& settings, bool bf16_weights, Draft& draft);
// NeMo's weights in fp32, which passes cast (megatron_amp_O2: false). True where they are so. Call
// it once precision and sharding are put.
bool put_autocast(Settings& settings, const std::string& precision, Draft& draft);
// LoRA, as ms-swift, NeMo, MindSpeed, Bridge and Primus ask for it.
void put_adapters(Settings& settings, Draft& draft);
void put_kept_activations(Settings& settings, Draft& draft);

}  // namespace pipesim
