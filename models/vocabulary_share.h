// The work, memory and exchange of a device's share of a vocabulary that all devices of a pipeline
// divide. The method is Vocabulary Parallelism (arXiv 2411.05288, sections 3 to 5).
//
// The output's columns and the embedding's rows are divided evenly, over tensor ranks and devices.
//   S    the logits of the share, their maximum, exponentials and sum
//   T    the gradient of the logits, and from it that of the weights
//        vocab-2 makes the input's gradient in S, from the exponentials before they are scaled and
//        the rows of the targets; vocab-1 and interlaced make it in T
//   IF   the rows of the tokens that the share has, zeros for the others
//   IB   their gradients into one of all rows, which is added to the main one
//
// Learned positions and dropout stay on the first stage, the final norm on the last. With
// vocabulary_devices, layer_work, layer_memory and layer_cost count no more there. The formulas are
// in docs/reference/vocabulary-parallelism.md. Pure functions. O(1), held in fixed room.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>

#include "models/collective.h"
#include "models/layer_context.h"
#include "models/layer_cost.h"
#include "models/transformer.h"
#include "models/work.h"
#include "sim/core/units.h"
#include "sim/pipeline/pass.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// All require LayerContext::vocabulary_devices to be the devices of the pipeline, a sharded
// placement, and fault_of(model, context) to be empty.

// `pass` is S, T, IF or IB; LogicError otherwise. Only the collectives of tensor ranks.
Work share_work(const Transformer& model, PassKind pass, VocabularyPlacement placement,
                const LayerContext& context);

// Seconds that IF or IB takes for the tokens of a microbatch beside its work; none for S and T.
Seconds token_seconds(PassKind pass, const CostSetting& setting);
// Seconds of one microbatch, and the bytes from S to T; none where the vocabulary is not sharded.
VocabularyCost share_cost(const Transformer& model, VocabularyPlacement placement,
                          const CostSetting& setting, const Hardware& hardware);
Bytes share_activation(const Transformer& model, const LayerContext& context);

// The collectives that a barrier consists of, one after the other, over the pipeline's devices. A
// broadcast takes what an all-gather of as many bytes does. The public code all-reduces gradients
// of the input, and broadcasts in fp32 with vocab-1 and vocab-2.
using BarrierCollectives = boost::container::static_vector<Collective, 4>;
BarrierCollectives barrier_collectives(const Transformer& model, VocabularyPlacement placement,
                                       const LayerContext& context, Barrier barrier);
// How the pipeline's devices stand in nodes.
GroupShape pipeline_group(const CostSetting& setting, int gpus_per_node);

// Seconds of all barriers.
BarrierSeconds barrier_seconds(const Transformer& model, VocabularyPlacement placement,
                               const CostSetting& setting, const Hardware& hardware);

// Makes passes of layers as much longer as the software says that they are beside these
// collectives; interlaced ones wait for theirs and stay.
void slow_beside_collectives(VocabularyPlacement placement, const Software& software,
                             std::span<StageCost> stages);

// Adds all of the above to the problem's devices; nothing where its vocabulary is not sharded.
void fill_vocabulary(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
                     Problem& problem);

// Parameters of both matrices, or of the one where they are tied.
double share_parameters(const Transformer& model, const LayerContext& context);
// Bytes held only while a pass of the share runs; and bytes that its collectives send and receive.
Bytes share_temporaries(const Transformer& model, const LayerContext& context);
Bytes share_buffers(const Transformer& model, const LayerContext& context);

}  // namespace pipesim
