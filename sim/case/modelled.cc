#include "sim/scenario/modelled.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/layer_work.h"
#include "sim/case/problem.h"
#include "sim/case/roofline.h"
#include "sim/execution/evaluate.h"
#include "sim/prepare/balance.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

// Given costs do not know what a layer takes: layers are weighed by the FLOPs of all passes.
LayerSeconds weights_by_work(const Modelled& modelled) {
  const Transformer& model = modelled.model;
  const auto of = [&](LayerKind kind) {
    double sum = 0;
    for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
      sum += flops(layer_work(model, kind, pass, modelled.context)).value();
    }
    return Seconds(sum);
  };
  LayerSeconds seconds;
  seconds.embedding = of(LayerKind::kEmbedding);
  seconds.dense = of(LayerKind::kDense);
  seconds.output = of(LayerKind::kOutput);
  if (model.experts) seconds.moe = of(LayerKind::kMoe);
  if (model.mtp_layers > 0) seconds.mtp = of(LayerKind::kMtp) + seconds.output;
  return seconds;
}

Layout split(const Modelled& modelled, const ScheduleChoice& choice, const Placement& placement) {
  const Transformer& model = modelled.model;
  switch (modelled.split.way) {
    case LayerSplit::Way::kListed:
      return listed_layout(model, modelled.split.listed);
    case LayerSplit::Way::kString:
      return parse_megatron_layout(model, modelled.split.text);
    case LayerSplit::Way::kBalanced:
      if (choice.balanced &&
          std::cmp_equal(choice.balanced->stages.size(), placement.model_stages())) {
        return *choice.balanced;
      }
      // Before it is settled, or with another number of stages than that was for.
      return balance(model, placement.model_stages(), weights_by_work(modelled));
    case LayerSplit::Way::kEven:
      break;
  }
  return even_layout(model, placement, modelled.split.even);
}

// The scenario and its choice in another setting.
struct Asked {
  Scenario scenario;
  ScheduleChoice choice;
};

Asked in_setting(const Scenario& scenario, const ScheduleChoice& choice,
                 const MemorySetting& setting) {
  Asked asked{scenario, choice};
  Modelled& modelled = *asked.scenario.modelled;
  const int parts = modelled.context.micro_batch_size / setting.context.micro_batch_size;
  asked.scenario.batch.microbatches *= parts;
  asked.scenario.parallel.pipeline = setting.pipeline;
  modelled.context = setting.context;
  if (is_sharded(scenario.vocabulary)) modelled.context.vocabulary_devices = setting.pipeline;
  modelled.context.recompute = RecomputeGranularity::kNone;
  // As Megatron does where nothing is said, experts are divided as the rest is.
  const LayerContext& before = scenario.modelled->context;
  if (before.expert_tensor == before.tensor)
    modelled.context.expert_tensor = setting.context.tensor;
  modelled.state = setting.state;
  asked.choice.recompute = choice.recompute.value_or(Recompute{});
  if (setting.context.recompute != context_of(*scenario.modelled, choice).recompute) {
    asked.choice.recompute = Recompute{.granularity = setting.context.recompute};
  }
  return asked;
}

std::optional<Bytes> peak_of(Asked asked) {
  const Scenario& scenario = asked.scenario;
  const ScheduleChoice& choice = asked.choice;
  const Modelled& modelled = *scenario.modelled;
  const bool possible = fault_of(modelled.model, modelled.context).empty() &&
                        fault_of(modelled.model, modelled.context, modelled.state).empty();
  if (!possible ||
      (choice.program && choice.program->shape().devices != scenario.parallel.pipeline))
    return std::nullopt;
  try {
    if (modelled.split.way == LayerSplit::Way::kBalanced) {
      asked.choice.balanced = balanced_layout(scenario, choice);
      if (!choice.balanced) return std::nullopt;
    }
    const MemoryEstimate memory = memory_of(scenario, choice);
    const Problem problem = make_problem(scenario, choice);
    const Evaluation result = evaluate(*make_program(choice, problem), problem);
    Bytes peak;
    for (size_t device = 0; device < memory.devices.size(); ++device) {
      peak =
          std::max(peak, memory.devices[device].total() + result.devices[device].peak_activation);
    }
    return peak;
  } catch (const InputError&) {
    return std::nullopt;  // the schedule or the split does not take these sizes
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

bool given_by_device(const GivenCost& cost) {
  return std::ranges::any_of(
      std::array{cost.forward.size(), cost.backward_input.size(), cost.backward_weight.size(),
                 cost.overlapped.size(), cost.recompute.size(), cost.output_forward.size(),
                 cost.output_backward.size(), cost.input_forward.size(),
                 cost.input_backward.size()},
      [](size_t length) { return length > 1; });
}

}  // namespace

LayerContext context_of(const Modelled& modelled, const ScheduleChoice& choice) {
  LayerContext context = modelled.context;
  if (!choice.recompute) return context;
  context.recompute = granularity_of(choice);
  return context;
}

Layout layout_of(const Modelled& modelled, const ScheduleChoice& choice, int devices) {
  const Placement placement = placement_of(choice, devices);
  try {
    Layout layout = split(modelled, choice, placement);
    if (std::cmp_equal(layout.stages.size(), placement.model_stages())) return layout;
    throw InfeasibleError(fmt::format("{} stages, but {} has {}", layout.stages.size(), choice.name,
                                      placement.model_stages()));
  } catch (const InfeasibleError& error) {
    throw InputError(modelled.split.where, error.what());
  }
}

LayerSeconds layer_weights(const Scenario& scenario, const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  if (!scenario.roofline) return weights_by_work(modelled);
  const LayerCosts costs =
      layer_costs(modelled.model, cost_setting_of(scenario, choice), *scenario.hardware);
  const int recomputed = recompute_chunks_of(choice);
  const double again = recomputed > 0 && recomputed == chunks_of(choice) ? 1 : 0;
  const auto of = [&](LayerKind kind, double forwards) {
    const LayerCost& cost = costs[static_cast<size_t>(kind)];
    return forwards * cost.forward.total() + cost.backward_input.total() +
           cost.backward_weight.total();
  };
  const Seconds output = of(LayerKind::kOutput, 1);
  return {.embedding = of(LayerKind::kEmbedding, 1),
          .dense = of(LayerKind::kDense, 1 + again),
          .moe = of(LayerKind::kMoe, 1 + again),
          .mtp = of(LayerKind::kMtp, 1 + again) + output,
          .output = output};
}

MemoryEstimate memory_of(const Scenario& scenario, const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  const int devices = scenario.parallel.pipeline;
  return estimate_memory(modelled.model, context_of(modelled, choice),
                         layout_of(modelled, choice, devices), placement_of(choice, devices),
                         modelled.state);
}

std::optional<MemoryChange> change_that_fits(const Scenario& scenario,
                                             const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  if (!modelled.capacity) return std::nullopt;
  const MemorySetting now{context_of(modelled, choice), modelled.state, scenario.parallel.pipeline};
  return nearest_change(now, *modelled.capacity,
                        [&](const MemorySetting& setting) -> std::optional<Bytes> {
                          // Costs by device or stage say nothing of twice as many.
                          if (setting.pipeline != now.pipeline && given_by_device(scenario.cost))
                            return std::nullopt;
                          return peak_of(in_setting(scenario, choice, setting));
                        });
}

}  // namespace pipesim
