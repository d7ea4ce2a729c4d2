#include "models/sharding.h"

#include <algorithm>
#include <vector>

#include "models/layer_parameters.h"
#include "models/vocabulary_share.h"

namespace pipesim {
namespace {

// A layer as it stands on a stage.
struct Unit {
  Seconds gather, gather_again, scatter;     // before F and B, behind W
  Seconds forward, backward, weight, again;  // compute
};
using Units = std::vector<Unit>;

Seconds seen(Seconds collective, Seconds compute, double share) {
  return std::max(share * collective, collective - compute);
}

Seconds seconds_over(CollectiveKind kind, const HeldParameters& parameters, double bytes,
                     const CostSetting& setting, const Hardware& hardware) {
  const int node = hardware.interconnect.gpus_per_node;
  const auto over = [&](double number, GroupShape group) {
    return setting.factors.reduction *
           collective_seconds(hardware.interconnect, {kind, Group::kData, Bytes(bytes * number)},
                              group);
  };
  Seconds sum;
  if (parameters.dense > 0) sum += over(parameters.dense, dense_groups(setting, node).shards);
  if (parameters.expert > 0) sum += over(parameters.expert, expert_groups(setting, node).shards);
  return sum;
}

std::vector<LayerKind> kinds_of(const Transformer& model, const StageLayers& stage) {
  std::vector<LayerKind> kinds;
  if (stage.embedding) kinds.push_back(LayerKind::kEmbedding);
  kinds.insert(kinds.end(), count_layers(model, stage)[LayerKind::kEncoder], LayerKind::kEncoder);
  if (embeds_again(model, stage)) kinds.push_back(LayerKind::kDecoderEmbedding);
  const std::vector<LayerKind> layers = layer_kinds(model, stage);
  kinds.insert(kinds.end(), layers.begin(), layers.end());
  if (stage.output) kinds.push_back(LayerKind::kOutput);
  return kinds;
}

// Layers that are not recomputed have no R, and a B of their own.
void leave_out_others(const std::vector<LayerKind>& kinds, const StageLayers& stage,
                      const LayerCosts& costs, const RecomputedLayers& again, Units& units) {
  const auto before = static_cast<size_t>(std::ranges::count(kinds, LayerKind::kEncoder) +
                                          (stage.embedding ? 1 : 0)) +
                      static_cast<size_t>(std::ranges::count(kinds, LayerKind::kDecoderEmbedding));
  for (size_t i = 0; i < units.size(); ++i) {
    const bool decoder = i >= before && i < before + stage.layers;
    const bool behind = decoder ? again.has(static_cast<int>(i - before)) : again.all_behind();
    if (i < before ? again.of_encoder() : behind) continue;
    const LayerCost& cost = costs[kinds[i]];
    units[i].again = Seconds(0);
    units[i].backward += cost.backward_where(false).cover() - cost.backward_input.cover();
  }
}

Units units_of(const Transformer& model, const StageLayers& stage, const LayerCosts& costs,
               const LayerShardings& shardings, const RecomputedLayers& again = {}) {
  const bool embeds = stage.embedding || embeds_again(model, stage);
  const bool tied = model.tied_embeddings && embeds && stage.output;
  Units units;
  const std::vector<LayerKind> kinds = kinds_of(model, stage);
  for (const LayerKind kind : kinds) {
    const LayerCost& cost = costs[kind];
    const Seconds gather = shardings[kind].gather;
    Unit unit{gather,
              has_backward(model, kind) ? gather : Seconds(0),
              shardings[kind].scatter,
              cost.forward.cover(),
              cost.backward_input.cover(),
              cost.backward_weight.cover(),
              is_layer(kind) ? cost.again.cover() : Seconds(0)};
    const bool shared = kind == LayerKind::kDecoderEmbedding && stage.embedding;
    if ((kind == LayerKind::kOutput && tied) || shared) {
      unit.gather = unit.gather_again = unit.scatter = Seconds(0);
    }
    if (kind == LayerKind::kMtp) {  // every module makes logits of its own
      const LayerCost& logits = costs[LayerKind::kOutput];
      unit.forward += logits.forward.cover();
      unit.backward += logits.backward_input.cover();
      unit.weight += logits.backward_weight.cover();
    }
    units.push_back(unit);
  }
  if (!again.all()) leave_out_others(kinds, stage, costs, again, units);
  return units;
}

Seconds seen_in_forward(const Units& units, double splits, double share) {
  Seconds sum;
  for (size_t i = 0; i < units.size(); ++i) {
    if (i == 0) sum += units[i].gather;
    if (i + 1 < units.size()) {
      sum += seen(units[i + 1].gather, units[i].forward / splits, share);
    }
  }
  return sum;
}

// From the last layer to the first, behind compute that `of` says.
template <class ComputeOf>
Seconds seen_in_backward(const Units& units, bool gathers, bool scatters, ComputeOf of,
                         double share) {
  Seconds sum;
  for (size_t i = units.size(); i-- > 0;) {
    const bool last = i + 1 == units.size();
    if (last && gathers) sum += units[i].gather_again;
    Seconds beside;
    if (i > 0 && gathers) beside += units[i - 1].gather_again;
    if (!last && scatters) beside += units[i + 1].scatter;
    sum += seen(beside, of(units[i]), share);
    if (i == 0 && scatters) sum += units[i].scatter;
  }
  return sum;
}

}  // namespace

LayerSharding layer_sharding(const Transformer& model, LayerKind kind, const CostSetting& setting,
                             const Hardware& hardware) {
  const LayerContext& context = setting.context;
  LayerParameters held =
      layer_parameters(model, kind, {context.tensor, context.expert, context.expert_tensor});
  if (!is_layer(kind) && context.vocabulary_devices > 0) {  // all devices share the matrix
    held.dense -= 1.0 * model.vocab_size / context.tensor * model.hidden_size;
  }
  const LayerParameters trained = trained_parameters(model, kind, held, context);
  const bool beside = context.adapter_rank > 0;  // adapters, of what is held
  LayerSharding sharding{
      {held.dense + (beside ? trained.dense : 0), held.expert + (beside ? trained.expert : 0)},
      {},
      {}};
  const double weight = context.fp8_parameters && is_layer(kind) ? 1 : element_bytes(context);
  sharding.gather =
      seconds_over(CollectiveKind::kAllGather, sharding.parameters, weight, setting, hardware);
  sharding.scatter = seconds_over(CollectiveKind::kReduceScatter, {trained.dense, trained.expert},
                                  setting.state.gradient_bytes(), setting, hardware);
  return sharding;
}

LayerShardings layer_shardings(const Transformer& model, const CostSetting& setting,
                               const Hardware& hardware) {
  const KindCounts counts = count_all(model);
  LayerShardings shardings{};
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] > 0) shardings[kind] = layer_sharding(model, kind, setting, hardware);
  }
  return shardings;
}

bool gathers_every_microbatch(const ParameterState& state, int devices) {
  return state.sharded_weights && (state.reshard_after_forward || devices == 1);
}

StageSharding stage_sharding(const Transformer& model, const StageLayers& stage,
                             const LayerCosts& costs, const LayerShardings& shardings,
                             const CostSetting& setting, const Hardware& hardware,
                             const ShardedRun& run) {
  const ParameterState& state = setting.state;
  const double share = hardware.interconnect.exchange_share;
  const Units units = units_of(model, stage, costs, shardings, setting.context.recomputed_layers);
  const bool gathers = state.sharded_weights && state.reshard_after_forward;
  const bool scatters = state.reduces_every_microbatch();
  const auto backward = [&](const Unit& unit) {
    return (unit.backward + (run.recomputed ? unit.again : Seconds(0))) / run.splits;
  };
  const auto weight = [&](const Unit& unit) { return unit.weight / run.splits; };
  const auto both = [&](const Unit& unit) { return backward(unit) + weight(unit); };
  StageSharding sum;
  if (gathers_every_microbatch(state, run.devices)) {
    sum.forward = seen_in_forward(units, run.splits, share);
  }
  if (setting.fused_backward) {
    sum.backward_input = seen_in_backward(units, gathers, false, both, share);
    sum.backward_weight =
        seen_in_backward(units, gathers, scatters, both, share) - sum.backward_input;
  } else {
    sum.backward_input = seen_in_backward(units, gathers, false, backward, share);
    sum.backward_weight = seen_in_backward(units, false, scatters, weight, share);
  }
  return sum;
}

VocabularySharding vocabulary_sharding(const Transformer& model, VocabularyPlacement placement,
                                       const CostSetting& setting, const Hardware& hardware) {
  const ParameterState& state = setting.state;
  const int matrices = model.tied_embeddings ? 1 : 2;
  VocabularySharding share;
  share.matrix.dense = share_parameters(model, setting.context) / matrices;
  share.gather = seconds_over(CollectiveKind::kAllGather, share.matrix,
                              element_bytes(setting.context), setting, hardware);
  share.scatter = seconds_over(CollectiveKind::kReduceScatter, share.matrix, state.gradient_bytes(),
                               setting, hardware);
  if (gathers_every_microbatch(state, setting.context.vocabulary_devices)) {
    share.input_forward = share.output_forward = share.gather;
    if (placement != VocabularyPlacement::kVocab2) share.output_backward = share.gather;
  }
  if (state.reduces_every_microbatch() && trains_model(setting.context)) {
    share.output_backward += share.scatter;
    share.input_backward = share.scatter;
  }
  return share;
}

GatheredOnce gather_once(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs, const LayerShardings& shardings,
                         const Hardware& hardware) {
  const Units units = units_of(model, stage, costs, shardings);
  GatheredOnce once;
  for (const Unit& unit : units) once.whole += unit.gather;
  once.seen = seen_in_forward(units, 1, hardware.interconnect.exchange_share);
  return once;
}

}  // namespace pipesim
