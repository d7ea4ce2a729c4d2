#include "sim/case/given_costs.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>
#include <vector>

#include "models/pair.h"
#include "models/vocabulary_share.h"
#include "sim/case/ranks.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

// The value of one microbatch on a virtual stage. Per device, the chunks that it passes there share
// the device's value.
template <class T>
T of_stage(const std::vector<T>& values, CostBasis per, const Placement& place, int vs) {
  if (per == CostBasis::kStage) return values[values.size() == 1 ? 0 : place.model_stage(vs)];
  const int device = place.device(vs);
  return place.per_chunk(device, values[values.size() == 1 ? 0 : device]);
}

// Seconds of a message to the next stage. Schedules plan with the nominal way of the first
// pipeline.
Seconds transfer_to(const Case& made, int vs, int next) {
  const Scenario& scenario = *made.scenario;
  const Placement& place = made.placement;
  if (!scenario.cost.message) return scenario.cost.transfer;
  return message_seconds(*scenario.cluster, rank_of(scenario, 0, place.device(vs)),
                         rank_of(scenario, 0, place.device(next)),
                         *scenario.cost.message / made.parts);
}

// The blocks of stages that are made of given layers.
class LayerBlocks {
 public:
  explicit LayerBlocks(Case& made)
      : made_(made), cost_(made.scenario->cost), layers_(*cost_.layers) {}

  // Blocks of two stages are added where stages differ, and so do their blocks.
  void add() {
    const Placement& place = made_.placement;
    bool alike = true;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      made_.problem.stages[vs].overlapped = seconds(vs, vs);
      alike = alike && count(vs) == count(0);
    }
    if (alike) return;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      for (int chunk = 0; chunk < place.chunks(); ++chunk) {
        made_.problem.blocks.push_back(seconds(vs, place.beside(vs, chunk)));
      }
    }
  }

 private:
  // Layers of a virtual stage; a device's are shared evenly by the chunks that a microbatch passes.
  [[nodiscard]] int count(int vs) const {
    const Placement& place = made_.placement;
    const std::vector<int>& counts = layers_.count;
    if (cost_.per == CostBasis::kStage) {
      return counts[counts.size() == 1 ? 0 : place.model_stage(vs)];
    }
    const int device = place.device(vs);
    const int layers = counts[counts.size() == 1 ? 0 : device];
    const double share = place.per_chunk(device, static_cast<double>(layers));
    const auto whole = static_cast<int>(std::lround(share));
    if (std::abs(share - whole) < 1e-6) return whole;
    throw InfeasibleError(
        fmt::format("{}: the {} layers of device {} (cost.layer.count) do not divide into its {} "
                    "chunks; say those of each stage, with cost.per: stage",
                    made_.choice.name, layers, device, place.chunks(device)));
  }

  Seconds seconds(int forward, int backward) {
    const auto [known, is_new] = known_.try_emplace({count(forward), count(backward)});
    if (is_new) {
      const std::vector<ForwardParts> forwards(known->first.first, layers_.forward);
      const std::vector<BackwardParts> backwards(known->first.second, layers_.backward);
      PairOptions options = pair_options(made_.choice);
      options.exchange_share = layers_.exchange_share;
      known->second = pair_times(forwards, backwards, options).total / made_.parts;
    }
    return known->second;
  }

  Case& made_;
  const GivenCost& cost_;
  const GivenLayers& layers_;
  std::map<std::pair<int, int>, Seconds> known_;
};

// Adds costs of every device's share of the vocabulary, and of the collectives.
void add_given_vocabulary(Case& made) {
  const Scenario& scenario = *made.scenario;
  const GivenCost& cost = scenario.cost;
  Problem& problem = made.problem;
  for (int d = 0; d < problem.shape.devices; ++d) {
    const auto of = [d](const auto& values) { return values[values.size() == 1 ? 0 : d]; };
    VocabularyCost share;
    share.output_forward = of(cost.output_forward);
    share.output_backward = of(cost.output_backward);
    share.input_forward = of(cost.input_forward);
    share.input_backward = of(cost.input_backward);
    if (scenario.memory && !scenario.memory->output_activation.empty()) {
      share.output_activation = of(scenario.memory->output_activation);
    }
    if (scenario.modelled) {
      share.output_activation =
          share_activation(scenario.modelled->model, scenario.modelled->context);
    }
    problem.vocabulary_costs.push_back(share);
  }
  problem.barriers.fill(cost.collective);
  if (cost.barriers) problem.barriers = *cost.barriers;
  problem.barriers[static_cast<size_t>(Barrier::kRendezvous)] = Seconds(0);
}

// Adds the costs of a run's measured passes.
void add_measured_costs(Case& made) {
  const MeasuredPasses& measured = *made.scenario->cost.passes;
  const Placement& place = made.placement;
  const auto stages = on_stages(measured, place.model_stages());
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = made.problem.stages[vs];
    fill(stages[place.model_stage(vs)], stage);
    const double parts = made.parts;
    for (Seconds* seconds : {&stage.forward, &stage.backward_input, &stage.backward_weight}) {
      *seconds = *seconds / parts;
    }
    const int next = place.downstream(vs);
    if (next < 0 || place.device(next) == place.device(vs)) continue;
    stage.transfer =
        message_between(measured, stages[place.model_stage(vs)], stages[place.model_stage(next)]);
  }
}

}  // namespace

void add_given_costs(Case& made) {
  const GivenCost& cost = made.scenario->cost;
  if (cost.passes) return add_measured_costs(made);
  const Placement& place = made.placement;
  const bool given = !made.scenario->roofline;
  const double parts = made.parts;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = made.problem.stages[vs];
    const auto seconds = [&](const std::vector<Seconds>& values) {
      return of_stage(values, cost.per, place, vs) / parts;
    };
    if (given) {
      stage.forward = seconds(cost.forward);
      stage.backward_input = seconds(cost.backward_input);
      stage.backward_weight = seconds(cost.backward_weight);
    }
    if (!cost.overlapped.empty()) stage.overlapped = seconds(cost.overlapped);
    if (!cost.recompute.empty()) stage.recompute = seconds(cost.recompute);
    if (!cost.copy_out.empty()) {
      stage.copy_out = seconds(cost.copy_out);
      stage.copy_in = seconds(cost.copy_in);
    }
    const int next = place.downstream(vs);
    if (next >= 0 && place.device(next) != place.device(vs)) {
      stage.transfer = transfer_to(made, vs, next);
    }
  }
  if (cost.layers) LayerBlocks(made).add();
  if (!cost.output_forward.empty()) add_given_vocabulary(made);
}

SliceParts slice_parts(const Case& made, int vs) {
  const GivenCost& cost = made.scenario->cost;
  const auto share = [&](const std::vector<Seconds>& fixed, const std::vector<Seconds>& pass) {
    if (fixed.empty()) return 0.0;
    const Seconds all = of_stage(pass, cost.per, made.placement, vs);
    return all > Seconds(0) ? of_stage(fixed, cost.per, made.placement, vs) / all : 0.0;
  };
  return {{cost.attention.forward, share(cost.fixed.forward, cost.forward)},
          {cost.attention.backward_input, share(cost.fixed.backward_input, cost.backward_input)},
          {0, share(cost.fixed.backward_weight, cost.backward_weight)}};
}

void add_bytes(Case& made) {
  const auto& given = made.scenario->memory;
  const Placement& place = made.placement;
  const double parts = made.parts;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = made.problem.stages[vs];
    if (given) {
      const auto bytes = [&](const std::vector<Bytes>& values) {
        return of_stage(values, given->per, place, vs) / parts;
      };
      stage.activation = bytes(given->activation);
      stage.weight_stash = bytes(given->weight_stash);
      if (!given->checkpoint.empty()) stage.checkpoint = bytes(given->checkpoint);
    }
    if (made.memory) {
      const StageMemory& memory = made.memory->stages[place.model_stage(vs)];
      stage.activation = memory.until_backward(made.recomputes[vs]) / parts;
      stage.weight_stash = memory.weight_stash / parts;
      stage.checkpoint = memory.checkpoint / parts;
    }
  }
}

}  // namespace pipesim
