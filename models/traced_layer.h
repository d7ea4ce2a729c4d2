// Work and bytes of a traced block on one GPU: the inside of models/layer_work.h, layer_memory.h
// and temporaries.h for models that tools/trace_torch.py described.
//
// Tensor ranks exchange where a matrix divided by its outputs first reads whole values, and where
// one divided by its inputs has made its result. Megatron-LM's attention and MLP do so
// (models/layer_work.h). Expert ranks exchange rows in front of and behind experts, in F and B.
#pragma once

#include "models/layer_context.h"
#include "models/traced.h"
#include "models/work.h"
#include "sim/core/units.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// The block of a traced model's layer of this kind. Requires is_traced(kind).
const TracedBlock& traced_block(const Transformer& model, LayerKind kind);

Work traced_work(const Transformer& model, const TracedBlock& block, PassKind pass,
                 const LayerContext& context);
// Bytes that a microbatch keeps for this use.
Bytes traced_kept(const TracedBlock& block, TracedUse use, const LayerContext& context);
// The most that the backward has made and still reads, and the output's gradient.
Bytes traced_temporaries(const Transformer& model, const TracedBlock& block,
                         const LayerContext& context);

}  // namespace pipesim
