// Models that see: NeMo's section `mm_cfg`, an encoder and a projector in front of the model.
#pragma once

#include "sim/interop/frameworks/draft.h"

namespace pipesim {

// Puts the encoder, and which parts are frozen. Call it once the model and its adapters are put.
// Stops at an encoder or a projector that is not known.
void put_vision(Settings& settings, long tensor, Draft& draft);

}  // namespace pipesim
