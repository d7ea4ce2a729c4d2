// Models that see: NeMo's section `mm_cfg`, an encoder and a projector in front of the model.
#pragma once

#include "sim/interop/frameworks/draft.h"

namespace pipesim {

// Puts the encoder, and which parts are frozen. Call it once the model and its adapters are put.
// Stops at an encoder or a projector that is not known.
void put_vision(Settings& settings, long tensor, Draft& draft);
// Megatron-LM's LLaVA recomputes its encoder where --recompute-vision says so. Call it once the
// model's recomputation is put.
void put_encoder_recompute(Settings& settings, Draft& draft);

}  // namespace pipesim
