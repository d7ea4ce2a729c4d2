// Memory of passes while they run, beside kept activations.
#pragma once

#include "models/layer_context.h"
#include "models/transformer.h"
#include "sim/core/units.h"

namespace pipesim {

// Bytes that a layer's passes need beyond what is kept, at their largest (docs/reference/model.md,
// "Buffers").
Bytes temporaries(const Transformer& model, LayerKind kind, const LayerContext& context);

}  // namespace pipesim
