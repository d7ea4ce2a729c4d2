// The bytes that one layer keeps on one GPU: weights, activations from F until B and until W, and
// the messages that its ends send.
//
// Activations are counted tensor by tensor, the way of Korthikanti 2023 (arXiv 2205.05198, section
// 4). A linear layer keeps its input, attention its queries, keys and values. A norm, an activation
// and a dropout keep the tensors that their backward reads.
//
// GPT then keeps sbh(34 + 5as/h) bytes, over t tensor ranks sbh(10 + 24/t + 5as/ht), and with
// sequence parallelism sbh/t (34 + 5as/h). Selective recompute drops the 5as/h; full recompute
// keeps 2sbh. Pointwise recompute with flash attention keeps sbh(16 + 4g/a) for g groups of keys
// and values (PipeOffload, arXiv 2503.01328, section 4.4). W needs the inputs of linear layers, and
// the gradients of their outputs, which B makes: 32sbh (Zero Bubble, arXiv 2401.10241, Table 1).
// Flash attention keeps no scores but a number per token and head (Dao 2023, arXiv 2307.08691).
#pragma once

#include <boost/container/static_vector.hpp>

#include "models/kept.h"
#include "models/layer_context.h"
#include "models/layout.h"
#include "models/transformer.h"
#include "sim/core/units.h"

namespace pipesim {

struct KeptTensor {
  const char* name = "";
  Bytes bytes;
  Kept kept = Kept::kForB;
  RecomputeGranularity again = {};  // made again within B where one of these is
  OffloadModules leaves = {};       // on the host from F to B where one of these is
};
using KeptTensors = boost::container::static_vector<KeptTensor, 44>;

// Every tensor that a microbatch keeps on this GPU when nothing is recomputed. Temporaries within a
// pass, statistics of norms and choices of experts are left out. Requires fault_of(model, context)
// to be empty.
KeptTensors kept_tensors(const Transformer& model, LayerKind kind, const LayerContext& context);

struct LayerMemory {
  double dense_parameters = 0;  // on this GPU, reduced over data and context parallel ranks
  double expert_parameters = 0;
  double dense_trained = 0;  // of these, and of adapters, those that have gradients and states
  double expert_trained = 0;
  Bytes weights;     // what passes read: bf16; in fp8 copies of the matrices, beside or alone
  Bytes activation;  // per microbatch, from F (under full recompute from R) to B
  // Per microbatch, from B to W. May exceed `activation`, where gradients are more than B frees.
  Bytes weight_stash;
  Bytes checkpoint;  // per microbatch, from F to R under full recompute
  Bytes rebuilt;     // of a microbatch within B, what modules make again
  Bytes offloaded;   // per microbatch, on the host from F to B; not in `activation`
};

// Bytes of one layer; embedding and output are not recomputed, their checkpoint is their
// activation. O(1).
LayerMemory layer_memory(const Transformer& model, LayerKind kind, const LayerContext& context);

// The encoder's output, which a microbatch keeps once for all layers of a stage that attend to it.
Bytes encoded_bytes(const Transformer& model, const LayerContext& context);

// A microbatch's activations, or their gradients, between a stage and the next: what each GPU
// sends, bf16. Under sequence parallelism, or where the framework scatters, each tensor rank sends
// a part. A stage that decodes sends the encoder's output too.
Bytes message_bytes(const Transformer& model, const LayerContext& context,
                    const StageLayers& sender = {});

}  // namespace pipesim
