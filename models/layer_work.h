// One GPU's computing and traffic in one pass of one layer, and a model's FLOPs.
//
// Matmuls of a linear layer of k inputs and n outputs on m tokens, 2 m n k flops each:
//   F  m x n x k
//   B  m x k x n
//   W  k x n x m
// A bias, rotary positions and norms are memory-bound. A layer of GPT takes sbh(24h + 4s) flops in
// F, sbh(24h + 8s) in B and 24 sbh^2 in W (Zero Bubble, arXiv 2401.10241, Table 1). The logits take
// 2 sbhV in each (Narayanan 2021, arXiv 2104.04473, appendix).
//
// Attention: scores and values are two matmuls forward and four backward, all s^2 of them. A flash
// kernel makes the scores again backward (five), and half of all when causal (Dao 2023, arXiv
// 2307.08691, section 4.1).
//
// Collectives are counted as in models/work.h. Tensor parallelism reduces the output of attention
// and MLP in F and their input's gradient in B (Shoeybi 2019, arXiv 1909.08053, section 3). Under
// sequence parallelism each is a reduce-scatter, with an all-gather before, and W gathers the input
// once more (Korthikanti 2023, arXiv 2205.05198, section 4.2.2). Context ranks gather keys and
// values, pass them on around a ring, or divide heads (models/work_of_context.cc). Experts exchange
// tokens before and after, in F and in B.
//
// Bytes moved: reads and writes of the memory-bound kernels, tensor by tensor, as in
// docs/reference/model.md. Fixed room: nothing allocates. O(1).
#pragma once

#include "models/layer_context.h"
#include "models/transformer.h"
#include "models/work.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// `pass` is F, B, W or R (as F); BW is B and then W. Requires fault_of(model, context) to be empty;
// LogicError for a pass that is none of these. Selective recompute adds attention's forward to B.
// R is F again: under full recompute it is run for layers, not for embedding and output.
Work layer_work(const Transformer& model, LayerKind kind, PassKind pass,
                const LayerContext& context);

// The part of a decoder layer or an MTP module between the two exchanges of tokens. It is the
// routed experts with the sorting of rows, or the MLP.
// Empty for a layer that has neither, and for a traced block.
Work feed_work(const Transformer& model, LayerKind kind, PassKind pass,
               const LayerContext& context);

// Flops of all matmuls and attention kernels.
Flops flops(const Work& work);

// Forward and backward of one sequence through the whole model, nothing recomputed: three times F.
// W of frozen weights, a frozen encoder's backward and padded tokens of experts are missing, as
// `training` and the model say. Half of attention when `causal`; the convention has to be named
// beside an MFU. MTP modules included.
Flops model_flops(const Transformer& padded, int seq_length, bool causal,
                  const LayerContext& training = {});

// F of all layers and of the output, in this context.
Flops forward_flops(const Transformer& model, const LayerContext& context);

}  // namespace pipesim
