#include "models/vocabulary_share.h"

#include <algorithm>
#include <cmath>

#include "models/work_builder.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

// Columns of the output, or rows of the embedding, in one share.
double columns(const Transformer& model, const LayerContext& context) {
  return std::ceil(1.0 * model.vocab_size / context.tensor / context.vocabulary_devices);
}

double logits(const Transformer& model, const LayerContext& context) {
  return layer_tokens(context) * columns(model, context);
}

// A microbatch's activations or gradients at an end of the pipeline.
Bytes message(const Transformer& model, const LayerContext& context) {
  return Bytes(layer_tokens(context) * model.hidden_size * element_bytes(context));
}

}  // namespace

Work share_work(const Transformer& model, PassKind pass, VocabularyPlacement placement,
                const LayerContext& context) {
  const bool early = placement == VocabularyPlacement::kVocab2;
  const double width = columns(model, context);
  WorkBuilder forward(model, PassKind::kF, context);
  WorkBuilder backward(model, PassKind::kB, context);
  WorkBuilder weights(model, PassKind::kW, context);
  switch (pass) {
    case PassKind::kIF:
      forward.share_of_embedding(width);
      return forward.work();
    case PassKind::kIB:
      backward.share_of_embedding(width);
      return backward.work();
    case PassKind::kS:
      forward.logits(width);
      if (early) {
        forward.early_gradient(width);
        backward.output_matmul(width);
        forward.append(backward.work());
      }
      return forward.work();
    case PassKind::kT:
      // Interlaced, S knows the sum of all shares before it divides.
      if (placement != VocabularyPlacement::kInterlaced) backward.rescale_softmax(width);
      if (early) {
        backward.logits_gradient(width);
      } else {
        backward.logits(width);
      }
      weights.logits(width);
      backward.append(weights.work());
      return backward.work();
    default:
      throw LogicError("no pass of a vocabulary's share");
  }
}

Bytes share_activation(const Transformer& model, const LayerContext& context) {
  // Exponentials in fp32, and the input for the weights' gradient.
  return 4.0 * Bytes(logits(model, context)) + message(model, context);
}

Seconds token_seconds(PassKind pass, const CostSetting& setting) {
  if (pass != PassKind::kIF && pass != PassKind::kIB) return {};
  return setting.factors.compute * layer_tokens(setting.context) *
         setting.software.vocabulary_token[pass == PassKind::kIF ? 0 : 1];
}

VocabularyCost share_cost(const Transformer& model, VocabularyPlacement placement,
                          const CostSetting& setting, const Hardware& hardware) {
  if (!is_sharded(placement)) return {};
  const auto seconds = [&](PassKind pass) {
    return work_cost(share_work(model, pass, placement, setting.context), setting, hardware)
               .total() +
           token_seconds(pass, setting);
  };
  return {.output_forward = seconds(PassKind::kS),
          .output_backward = seconds(PassKind::kT),
          .input_forward = seconds(PassKind::kIF),
          .input_backward = seconds(PassKind::kIB),
          .output_activation = share_activation(model, setting.context)};
}

// Ranks fill nodes in the order tensor, context, expert,
// data, pipeline.
GroupShape pipeline_group(const CostSetting& setting, int gpus_per_node) {
  const LayerContext& context = setting.context;
  const int devices = context.vocabulary_devices;
  const int stride = context.tensor * context.context * setting.state.data;
  int near = std::clamp(gpus_per_node / stride, 1, devices);
  while (devices % near != 0) --near;
  return {devices, near};
}

BarrierCollectives barrier_collectives(const Transformer& model, VocabularyPlacement placement,
                                       const LayerContext& context, Barrier barrier) {
  const auto one = [](CollectiveKind kind, Bytes bytes) {
    return Collective{kind, Group::kData, bytes};
  };
  const Bytes whole = message(model, context);
  const Bytes number = Bytes(4 * layer_tokens(context));  // one a token, in fp32
  const bool early = placement == VocabularyPlacement::kVocab2;
  const bool waits = placement == VocabularyPlacement::kInterlaced;
  switch (barrier) {
    case Barrier::kEmbedding:
      return {one(CollectiveKind::kAllReduce, whole)};
    case Barrier::kOutput:
      // With the loss of the microbatch before, in fp32.
      return {one(CollectiveKind::kAllGather, waits ? whole : 2 * whole + number)};
    case Barrier::kEmbeddingGradient:
      return {one(CollectiveKind::kAllGather, whole)};
    case Barrier::kSoftmax: {
      // Maximum, the target's logit and sum.
      BarrierCollectives all(3, one(CollectiveKind::kAllReduce, number));
      if (early) all.push_back(one(CollectiveKind::kAllReduce, whole));
      return all;
    }
    case Barrier::kOutputGradient:
      return {one(CollectiveKind::kAllReduce, whole)};
    case Barrier::kRendezvous:
      break;
  }
  return {};
}

BarrierSeconds barrier_seconds(const Transformer& model, VocabularyPlacement placement,
                               const CostSetting& setting, const Hardware& hardware) {
  const GroupShape group = pipeline_group(setting, hardware.interconnect.gpus_per_node);
  BarrierSeconds seconds{};
  for (size_t barrier = 0; barrier < kBarriers; ++barrier) {
    for (const Collective& each :
         barrier_collectives(model, placement, setting.context, static_cast<Barrier>(barrier))) {
      seconds[barrier] += collective_seconds(hardware.interconnect, each, group);
    }
  }
  return seconds;
}

void slow_beside_collectives(VocabularyPlacement placement, const Software& software,
                             std::span<StageCost> stages) {
  if (placement == VocabularyPlacement::kInterlaced) return;
  const double longer = 1 / software.beside_vocabulary;
  for (StageCost& stage : stages) {
    stage.forward = longer * stage.forward;
    stage.backward_input = longer * stage.backward_input;
    stage.backward_weight = longer * stage.backward_weight;
    if (stage.overlapped) stage.overlapped = longer * *stage.overlapped;
    if (stage.recompute) stage.recompute = longer * *stage.recompute;
  }
}

double share_parameters(const Transformer& model, const LayerContext& context) {
  return (model.tied_embeddings ? 1 : 2) * columns(model, context) * model.hidden_size;
}

Bytes share_temporaries(const Transformer& model, const LayerContext& context) {
  // S has the logits as they come and in fp32; IB the embedding's gradient as a whole, which LoRA
  // has none of.
  const double gradient = trains_model(context) ? weight_bytes(context) : 0;
  return Bytes(
      std::max(6 * logits(model, context), gradient * columns(model, context) * model.hidden_size));
}

Bytes share_buffers(const Transformer& model, const LayerContext& context) {
  // An embedding and its gradient, an output and its gradient on their way.
  return 4 * message(model, context);
}

void fill_vocabulary(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
                     Problem& problem) {
  if (!is_sharded(problem.vocabulary)) return;
  problem.vocabulary_costs.assign(problem.shape.devices,
                                  share_cost(model, problem.vocabulary, setting, hardware));
  problem.barriers = barrier_seconds(model, problem.vocabulary, setting, hardware);
  slow_beside_collectives(problem.vocabulary, setting.software, problem.stages);
}

}  // namespace pipesim
