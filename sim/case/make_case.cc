#include "sim/case/make_case.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "models/slowest.h"
#include "sim/case/program.h"
#include "sim/case/stage_costs.h"
#include "sim/case/unequal_units.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/coupling.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

// Placements of a fixed number of chunks do not ask for it.
void check_chunks(const Scenario& scenario, const ScheduleChoice& choice) {
  if (choice.program) return;
  const Schedule& schedule = schedule_of(choice);
  const int chunks = chunks_of(choice);
  if (chunks >= schedule.min_chunks && chunks <= schedule.max_chunks) return;
  Problem asked;
  asked.shape = {scenario.parallel.pipeline, chunks, scenario.batch.microbatches,
                 splits_of(choice)};
  refuse_shape(choice, asked.shape, *schedule.refusal(asked));
}

// How the choice's passes run.
CostSetting cost_setting(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const ScheduleChoice& choice = outline.choice;
  CostSetting setting{*outline.context, state_on(outline.placement, scenario.modelled->state),
                      scenario.roofline->overlap};
  setting.software = scenario.roofline->software;
  setting.pair = pair_options(choice);
  setting.fused_backward =
      choice.program ? choice.program->whole_backwards() : schedule_of(choice).whole_backward;
  if (const auto& anchor = scenario.roofline->anchor) setting.factors = anchor->factors;
  setting.factors.compute *=
      slowest(scenario.hardware->variation, static_cast<double>(gpus_of(scenario.parallel)));
  return setting;
}

// True if R is among the passes that were read.
bool has_recomputation(const ScheduleChoice& choice) {
  if (choice.program) return choice.program->recomputes();
  return choice.described && schedule_of(choice).describes_recompute;
}

// One limit serves all devices: what the one that holds most beside activations leaves.
Bytes left_for_activations(const ScheduleChoice& choice, Bytes total,
                           const MemoryEstimate& memory) {
  Bytes beside;
  for (const DeviceMemory& device : memory.devices) beside = std::max(beside, device.total());
  if (beside < total) return total - beside;
  throw InfeasibleError(fmt::format(
      "memory_limit {} of {}: a device holds {} beside activations; give it more than that",
      human(total), choice.name, human(beside)));
}

std::optional<Bytes> activation_limit(const Case& made) {
  const auto& limit = made.choice.memory_limit;
  if (const auto* bytes = std::get_if<Bytes>(&limit)) return *bytes;
  if (const auto* total = std::get_if<TotalLimit>(&limit)) {
    return left_for_activations(made.choice, total->bytes, *made.memory);
  }
  if (const auto* factor = std::get_if<double>(&limit)) {
    return *factor * made.placement.devices() * for_planning(made.problem).device_activation();
  }
  return std::nullopt;
}

// Refuses options that do not work with iterations that run into each other.
void check_stream(const Case& made) {
  const auto refuse = [&made](const char* what) {
    throw InfeasibleError(fmt::format("{} is not known with {}: its iterations run into each other",
                                      made.choice.name, what));
  };
  if (made.scenario->parallel.pipelines > 1) refuse("several pipelines (parallel.pipelines)");
  if (made.problem.offload_chunks > 0) refuse("offload");
  const auto& modelled = made.scenario->modelled;
  if (modelled && modelled->state.sharded_gradients) refuse("sharded gradients or weights");
}

Problem empty_problem(const Case& made) {
  const Placement& place = made.placement;
  Problem problem;
  problem.shape = shape_of(made);
  problem.placement = place;
  problem.stages.resize(place.virtual_stages());
  problem.offload_chunks = offload_chunks_of(made.choice);
  problem.recompute_chunks = recompute_chunks_of(made.choice);
  problem.vocabulary = made.scenario->vocabulary;
  problem.options = made.choice.options;
  if (made.sync != OptimizerSync::kPostValidation) problem.objective = Objective::kMakespan;
  return problem;
}

// Stages that the choice asks to recompute, and those with R among the passes that were read.
std::vector<bool> recomputing_stages(const Case& made) {
  std::shared_ptr<const Program> read = made.choice.program;
  if (!read && has_recomputation(made.choice)) {
    const Schedule& schedule = schedule_of(made.choice);
    const Problem planning = for_planning(made.problem, schedule);
    if (!schedule.refusal(planning)) read = std::make_shared<Program>(schedule.plan(planning));
  }
  std::vector<bool> stages(made.placement.virtual_stages(), false);
  if (!read && made.problem.recompute_chunks == 0) return stages;
  for (int vs = 0; vs < made.placement.virtual_stages(); ++vs) {
    stages[vs] =
        made.placement.chunk(vs) < made.problem.recompute_chunks || (read && read->recomputes(vs));
  }
  return stages;
}

}  // namespace

Shape shape_of(const Outline& outline) {
  return {outline.placement.devices(), outline.placement.chunks(),
          outline.scenario->batch.microbatches, splits_of(outline.choice)};
}

Outline outline_of(std::shared_ptr<const Scenario> scenario, ScheduleChoice choice,
                   std::shared_ptr<const LayerCosts> costs) {
  check_chunks(*scenario, choice);
  Outline outline{std::move(scenario), std::move(choice)};
  const Scenario& asked = *outline.scenario;
  outline.placement = placement_of(outline.choice, asked.parallel.pipeline);
  if (asked.modelled) {
    outline.context = asked.modelled->context;
    if (outline.choice.recompute) {
      outline.context->recompute = granularity_of(outline.choice);
      outline.context->recomputed_layers = outline.choice.recompute->layers;
    } else if (has_recomputation(outline.choice)) {
      outline.context->recompute = RecomputeGranularity::kFull;
    }
    outline.context->blocks = blocks_of(outline.choice).has_value();
  }
  if (outline.context) outline.context = largest_microbatch(*outline.context, asked.batch);
  if (asked.roofline) {
    outline.setting = cost_setting(outline);
    outline.costs = std::move(costs);
    if (!outline.costs) find_layer_costs(outline);
  }
  return outline;
}

Case make_case(Outline outline, const Layout* balanced) {
  Case made;
  static_cast<Outline&>(made) = std::move(outline);
  made.label = label_of(made.choice);
  const Scenario& scenario = *made.scenario;
  static_cast<Coupling&>(made) = coupling_of(scenario, made.choice);
  made.problem = empty_problem(made);
  made.recomputes = recomputing_stages(made);
  made.parts = splits_of(made.choice);
  if (made.stream) check_stream(made);
  if (scenario.modelled) {
    made.layout = layout_of(*scenario.modelled, made.placement, made.choice.name, balanced);
  }
  add_stage_costs(made);
  add_unequal_units(made);
  made.problem.activation_limit = activation_limit(made);
  return made;
}

}  // namespace pipesim
