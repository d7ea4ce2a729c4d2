// Work and bytes of a traced block on one GPU: the inside of models/layer_work.h, layer_memory.h
// and temporaries.h for traced models.
//
// Tensor ranks exchange where a matrix of columns first reads whole values, and where a matrix of
// rows has made its result (models/tensor_exchange.h). Expert ranks exchange
// rows in front of and behind experts, in F and B.
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
// Bytes that a microbatch keeps until then.
Bytes traced_kept(const TracedBlock& block, Kept until, const LayerContext& context);
// The most that the backward has made and still reads, and the output's gradient.
Bytes traced_temporaries(const Transformer& model, const TracedBlock& block,
                         const LayerContext& context);

}  // namespace pipesim
