#include "sim/case/given_costs.h"

#include <vector>

#include "models/vocabulary_share.h"
#include "sim/case/ranks.h"

namespace pipesim {
namespace {

// The value of one microbatch on a virtual stage. Per device, the chunks of a device share its
// value; with two directions a microbatch passes only one of its two chunks, which then is the
// whole device.
template <class T>
T of_stage(const std::vector<T>& values, CostBasis per, const Placement& place, int vs) {
  if (per == CostBasis::kStage) return values[values.size() == 1 ? 0 : place.model_stage(vs)];
  const T value = values[values.size() == 1 ? 0 : place.device(vs)];
  return value / (static_cast<double>(place.chunks(place.device(vs))) / place.directions());
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
  if (given && is_sharded(made.problem.vocabulary)) add_given_vocabulary(made);
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
