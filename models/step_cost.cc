#include "models/step_cost.h"

#include <algorithm>
#include <cmath>

#include "models/layer_parameters.h"
#include "models/sharding.h"
#include "models/stage_cost.h"
#include "models/vocabulary_share.h"

namespace pipesim {
namespace {

constexpr double kBucket = 40e6;  // parameters
constexpr double kBucketPerRank = 1e6;

// Bytes of a gradient as the optimizer reads it.
double read_gradient(const ParameterState& state) {
  return state.optimizer.reads_16_bit_gradients ? state.gradient_bytes() : 4;
}

const StageLayers& stage_of(const Layout& layout, const Placement& place, int device, int chunk) {
  const int vs = place.virtual_stage(device, chunk);
  return layout.stages[place.model_stage(vs)];
}

double bucket_parameters(int ranks, const Software& software) {
  return software.bucket > 0 ? software.bucket : std::max(kBucket, kBucketPerRank * ranks);
}

// Exposed seconds of parameters in buckets behind `cover`.
Seconds seen(Seconds whole, double parameters, double bucket, Seconds cover) {
  const double share = parameters > bucket ? bucket / parameters : 1;
  return std::max(share * whole, whole - cover);
}

// Which ends of the model a device holds.
struct Ends {
  bool input = false;
  bool output = false;

  void add(const Transformer& model, const StageLayers& stage) {
    input = input || stage.embedding || embeds_again(model, stage);
    output = output || stage.output;
  }
};

Ends ends_of(const Transformer& model, const Layout& layout, const Placement& place, int device) {
  Ends ends;
  for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
    ends.add(model, stage_of(layout, place, device, chunk));
  }
  return ends;
}

bool uses_embedding(const Transformer& model, const Ends& ends) {
  return ends.input || (ends.output && model.tied_embeddings);
}

// Devices that hold the embedding's matrix, which what is decoded and a tied output use as well.
int holders(const Transformer& model, const Layout& layout, const Placement& place) {
  int number = 0;
  for (int device = 0; device < place.devices(); ++device) {
    const Ends ends = ends_of(model, layout, place, device);
    number += uses_embedding(model, ends) ? 1 : 0;
  }
  return number;
}

// The embedding's gradient between the devices that hold the matrix.
Seconds tied_seconds(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
                     const Layout& layout, const Placement& place, int device) {
  if ((!model.tied_embeddings && !model.cross) || place.devices() == 1) return {};
  if (!trains_model(setting.context)) return {};
  if (setting.context.vocabulary_devices > 0) return {};  // every device holds both of its share
  const Ends ends = ends_of(model, layout, place, device);
  const bool alone = !model.cross && ends.input && ends.output;
  if (!uses_embedding(model, ends) || alone) return {};
  const Bytes bytes(setting.state.gradient_bytes() * model.vocab_size * model.hidden_size /
                    setting.context.tensor);
  const int ranks = setting.context.tensor * setting.context.context * setting.state.data;
  const int all = model.cross ? holders(model, layout, place) : 2;
  const int near = ranks * place.devices() <= hardware.interconnect.gpus_per_node ? all : 1;
  return collective_seconds(hardware.interconnect,
                            {CollectiveKind::kAllReduce, Group::kData, bytes}, {all, near});
}

Seconds norm_seconds(const CostSetting& setting, const Hardware& hardware, int devices) {
  const int node = hardware.interconnect.gpus_per_node;
  const int ranks =
      setting.context.tensor * devices *
      (setting.state.distributed_optimizer
           ? std::min(setting.state.shards(), setting.state.data) * setting.context.context
           : 1);
  int near = std::min(ranks, node);
  while (ranks % near != 0) --near;
  return collective_seconds(hardware.interconnect,
                            {CollectiveKind::kAllReduce, Group::kData, Bytes(4)}, {ranks, near});
}

// Parameters whose states this GPU holds, or its host for it.
double own_parameters(const CostSetting& setting, const HeldParameters& held,
                      const Hardware& hardware) {
  if (!setting.state.distributed_optimizer) return held.dense + held.expert;
  const int node = hardware.interconnect.gpus_per_node;
  return held.dense / dense_groups(setting, node).shards.ranks +
         held.expert / expert_groups(setting, node).shards.ranks;
}

// Over the ranks of one of the groups, so many bytes of each parameter.
struct OverData {
  CollectiveKind kind;
  double bytes;
  GroupShape DataGroups::*group;
};

// Overlapped, or by software that always does so, a bucket at a time, each with its own start.
Seconds over_data(const OverData& what, const HeldParameters& held, bool overlapped,
                  const CostSetting& setting, const Hardware& hardware) {
  const int node = hardware.interconnect.gpus_per_node;
  const auto of = [&](double parameters, const DataGroups& groups) {
    if (parameters <= 0) return Seconds(0);  // a stage without layers
    const GroupShape group = groups.*what.group;
    const double bucket = bucket_parameters(group.ranks, setting.software);
    const bool cut = overlapped || setting.software.bucket > 0;
    const double buckets = cut ? std::ceil(parameters / bucket) : 1;
    const Bytes one(what.bytes * parameters / buckets);
    return setting.factors.reduction * buckets *
           collective_seconds(hardware.interconnect, {what.kind, Group::kData, one}, group);
  };
  return of(held.dense, dense_groups(setting, node)) +
         of(held.expert, expert_groups(setting, node));
}

// Seconds to reduce the gradients that microbatches have left.
Seconds reduce_seconds(const HeldParameters& held, const CostSetting& setting,
                       const Hardware& hardware) {
  const ParameterState& state = setting.state;
  const double bytes = state.gradient_bytes();
  const bool overlapped = setting.overlap.gradient_reduce || state.reduces_every_microbatch();
  if (!state.distributed_optimizer) {
    return over_data({CollectiveKind::kAllReduce, bytes, &DataGroups::shards}, held, overlapped,
                     setting, hardware);
  }
  Seconds sum;
  if (!state.reduces_every_microbatch()) {
    sum += over_data({CollectiveKind::kReduceScatter, bytes, &DataGroups::shards}, held, overlapped,
                     setting, hardware);
  }
  if (state.shards() < state.holders()) {
    const int node = hardware.interconnect.gpus_per_node;
    const HeldParameters own{held.dense / dense_groups(setting, node).shards.ranks,
                             held.expert / expert_groups(setting, node).shards.ranks};
    sum += over_data({CollectiveKind::kAllReduce, bytes, &DataGroups::replicas}, own, overlapped,
                     setting, hardware);
  }
  return sum;
}

// A stage keeps what its first microbatch gathers.
void gather_kept_weights(const Transformer& model, const CostSetting& setting,
                         const Hardware& hardware, const Layout& layout, const Placement& place,
                         const LayerCosts& costs, int device, StepCost& cost) {
  const LayerShardings shardings = layer_shardings(model, setting, hardware);
  for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
    const GatheredOnce once =
        gather_once(model, stage_of(layout, place, device, chunk), costs, shardings, hardware);
    cost.terms[ClosingTerm::kGather] += once.whole;
    cost.hidden += once.whole - once.seen;
  }
  if (setting.context.vocabulary_devices == 0) return;
  const int matrices = model.tied_embeddings ? 1 : 2;
  cost.terms[ClosingTerm::kGather] +=
      matrices * vocabulary_sharding(model, VocabularyPlacement::kVocab2, setting, hardware).gather;
}

}  // namespace

HeldParameters held_parameters(const Transformer& model, const LayerContext& context,
                               std::span<const StageLayers> stages) {
  const WeightDivision division{context.tensor, context.expert, context.expert_tensor};
  HeldParameters held;
  Ends ends;
  for (const StageLayers& stage : stages) {
    ends.add(model, stage);
    if (stage.embedding && embeds_again(model, stage) && trains_model(context)) {
      held.dense -= shared_embedding(model, context.tensor);
    }
    const KindCounts counts = count_layers(model, stage);
    for (const LayerKind kind : kLayerKinds) {
      const int number = counts[kind];
      if (number == 0) continue;
      const LayerParameters one =
          trained_parameters(model, kind, layer_parameters(model, kind, division), context);
      held.dense += number * one.dense;
      held.expert += number * one.expert;
    }
  }
  if (!trains_model(context)) return held;
  const double matrix = 1.0 * model.vocab_size * model.hidden_size / context.tensor;
  if (context.vocabulary_devices > 0) {
    const int matrices = (ends.input ? 1 : 0) + (ends.output ? 1 : 0);
    held.dense += share_parameters(model, context) - matrices * matrix;
    return held;
  }
  if (model.tied_embeddings && ends.input && ends.output) {
    held.dense -= matrix;
  }
  return held;
}

HeldParameters held_parameters(const Transformer& model, const LayerContext& context,
                               const Layout& layout, const Placement& place, int device) {
  return held_parameters(model, context, stages_of(layout, place, device));
}

StepBytes step_bytes(const ParameterState& state) {
  const OptimizerState& optimizer = state.optimizer;
  const double gradient = read_gradient(state);
  const bool copied = gradient > state.gradient_bytes();
  const bool reads = optimizer.remainders || optimizer.main_params == 0;
  return {2 * optimizer.bytes() + gradient + (reads ? 2 : 1) * state.weight_bytes,
          3 * gradient + (copied ? state.gradient_bytes() + gradient : 0)};
}

Seconds optimizer_seconds(const CostSetting& setting, const HeldParameters& held,
                          const Hardware& hardware) {
  const ParameterState& state = setting.state;
  const double own = own_parameters(setting, held, hardware);
  const double all = state.reduces_every_microbatch() ? own : held.dense + held.expert;
  const StepBytes bytes = step_bytes(state);
  const double step = state.optimizer.device_updates() * bytes.update + bytes.gradients;
  const int kernels = 4 * static_cast<int>(std::ceil(own / kLaunchElements));
  return memory_bound_seconds(hardware.gpu, Bytes(step * own + state.gradient_bytes() * all),
                              kernels + 1);
}

Seconds host_optimizer_seconds(const CostSetting& setting, const HeldParameters& held,
                               const Hardware& hardware) {
  const ParameterState& state = setting.state;
  const double parameters = state.optimizer.host_fraction * own_parameters(setting, held, hardware);
  if (state.optimizer.swapped) {
    return Bytes(parameters * state.optimizer.bytes()) / each_way(hardware.host);
  }
  const Seconds out = Bytes(parameters * read_gradient(state)) / one_way(hardware.host);
  const Seconds back = Bytes(parameters * state.weight_bytes) / one_way(hardware.host);
  const Seconds update = Bytes(parameters * step_bytes(state).update) /
                         (hardware.host.update / hardware.interconnect.gpus_per_node);
  return state.optimizer.overlaps_host ? std::max({out, update, back}) : out + update + back;
}

Seconds StepCost::total() const {
  Seconds sum;
  for (const Seconds term : terms) sum += term;
  return sum - hidden;
}

StepCost step_cost(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
                   const Layout& layout, const Placement& place, const LayerCosts& costs,
                   int device) {
  const ParameterState& state = setting.state;
  const HeldParameters held = held_parameters(model, setting.context, layout, place, device);
  StepCost cost;
  Seconds& reduce = cost.terms[ClosingTerm::kReduce];
  Seconds& gather = cost.terms[ClosingTerm::kGather];
  reduce = reduce_seconds(held, setting, hardware);
  const int ranks = dense_groups(setting, hardware.interconnect.gpus_per_node).shards.ranks;
  const double gathered = setting.context.fp8_parameters ? 1 : state.weight_bytes;
  if (state.distributed_optimizer && !state.sharded_weights) {
    gather = over_data({CollectiveKind::kAllGather, gathered, &DataGroups::shards}, held,
                       setting.overlap.parameter_gather, setting, hardware);
    if (ranks > 1) gather += 1.0 * ranks * setting.software.broadcast;
  }
  Seconds forward;
  Seconds backward;
  for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
    const StagePasses passes = stage_passes(model, stage_of(layout, place, device, chunk), costs,
                                            setting.context.recomputed_layers);
    forward += passes.forward.cover();
    backward += passes.backward_input.cover() + passes.backward_weight.cover();
  }
  const double parameters = held.dense + held.expert;
  const double bucket = bucket_parameters(ranks, setting.software);
  if (setting.overlap.gradient_reduce || state.reduces_every_microbatch()) {
    cost.hidden += reduce - seen(reduce, parameters, bucket, backward);
  }
  if (setting.overlap.parameter_gather) {
    cost.hidden += gather - seen(gather, parameters, bucket, forward);
  }
  if (state.sharded_weights && !gathers_every_microbatch(state, place.devices())) {
    gather_kept_weights(model, setting, hardware, layout, place, costs, device, cost);
  }
  reduce += tied_seconds(model, setting, hardware, layout, place, device);
  cost.terms[ClosingTerm::kNorm] = norm_seconds(setting, hardware, place.devices());
  cost.host = host_optimizer_seconds(setting, held, hardware);
  cost.terms[ClosingTerm::kOptimizer] =
      setting.factors.compute * optimizer_seconds(setting, held, hardware) + cost.host;
  cost.terms[ClosingTerm::kFixed] = setting.factors.fixed;
  return cost;
}

}  // namespace pipesim
