#include "validate/papers/timed_run.h"

#include <algorithm>

#include "models/memory.h"
#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/metrics/analyze.h"
#include "sim/planning/schedule.h"
#include "validate/papers/paper_keys.h"

namespace pipesim {
namespace {

// With what follows from the vocabulary's placement.
TimedRun completed(TimedRun run) {
  if (!is_sharded(run.vocabulary)) return run;
  run.setting.context.vocabulary_devices = run.devices;
  return run;
}

LayerCosts costs_of(const TimedRun& run) {
  LayerCosts costs = layer_costs(run.model, run.setting, run.hardware);
  if (is_sharded(run.vocabulary)) return costs;  // its passes take these factors: add_vocabulary
  LayerCost& output = costs[static_cast<size_t>(LayerKind::kOutput)];
  output.forward = run.profiled.output_forward * output.forward;
  output.backward_input = run.profiled.output_backward * output.backward_input;
  output.backward_weight = run.profiled.output_backward * output.backward_weight;
  const double tokens = layer_tokens(run.setting.context);
  output.forward.launches += tokens * run.profiled.output_forward_token;
  output.backward_input.launches += tokens * run.profiled.output_backward_token;
  return costs;
}

// Where the graph cannot hold devices for messages, beside a shared vocabulary: a message is part
// of the pass that sends it.
void hold_for_messages(Problem& problem) {
  for (size_t vs = problem.stages.size() - 1; vs > 0; --vs) {
    StageCost& upstream = problem.stages[vs - 1];
    upstream.forward += upstream.transfer;
    problem.stages[vs].backward_input += upstream.transfer;
    upstream.transfer = Seconds(0);
  }
}

void add_vocabulary(Problem& problem, const TimedRun& run) {
  if (!is_sharded(run.vocabulary)) return;
  VocabularyCost share = share_cost(run.model, run.vocabulary, run.setting, run.hardware);
  const Profiled& profiled = run.profiled;
  const double factor = run.compute_factor;
  const double tokens = layer_tokens(run.setting.context);
  share.output_forward =
      factor * profiled.forward *
      (profiled.output_forward * share.output_forward + tokens * profiled.output_forward_token);
  share.output_backward =
      factor * profiled.backward_input *
      (profiled.output_backward * share.output_backward + tokens * profiled.output_backward_token);
  share.input_forward = factor * (share.input_forward + profiled.input_forward);
  share.input_backward = factor * (share.input_backward + profiled.input_backward);
  problem.vocabulary = run.vocabulary;
  problem.vocabulary_costs.assign(run.devices, share);
  problem.barriers = barrier_seconds(run.model, run.vocabulary, run.setting, run.hardware);
  slow_beside_collectives(run.vocabulary, run.setting.software, problem.stages);
}

Layout layout_of(const TimedRun& run, const Placement& place) {
  return run.layers.empty() ? even_layout(run.model, place, run.split)
                            : listed_layout(run.model, run.layers);
}

Problem problem_of(const TimedRun& run, const Schedule& schedule, const Layout& layout,
                   const LayerCosts& costs) {
  Problem problem;
  problem.placement = schedule.place(run.devices, run.chunks);
  const Placement& place = problem.placement;
  problem.shape = {run.devices, run.chunks, run.microbatches, 1};
  problem.stages.resize(place.virtual_stages());
  if (run.setting.context.recompute == RecomputeGranularity::kFull) {
    problem.recompute_chunks = run.chunks;
  }
  fill_stage_seconds(run.model, run.setting, run.hardware, layout, place, costs, problem.stages);
  const MemoryEstimate memory =
      estimate_memory(run.model, run.setting.context, layout, place, run.setting.state);
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = problem.stages[vs];
    if (!run.measured.empty()) {
      const MeasuredStage& measured = run.measured[vs];
      stage.forward = measured.forward;
      stage.backward_input = measured.backward;
      stage.backward_weight = Seconds(0);
    }
    const double factor = run.compute_factor;
    stage.forward = factor * run.profiled.forward * stage.forward;
    stage.backward_input = factor * run.profiled.backward_input * stage.backward_input;
    stage.backward_weight = factor * run.profiled.backward_weight * stage.backward_weight;
    stage.overlapped = factor * *stage.overlapped;
    stage.recompute = factor * run.profiled.forward * *stage.recompute;
    if (stage.transfer > Seconds(0)) stage.transfer += run.profiled.message;
    const StageMemory& kept = memory.stages[place.model_stage(vs)];
    stage.activation = kept.until_backward(place.chunk(vs) < problem.recompute_chunks);
    stage.weight_stash = kept.weight_stash;
    stage.checkpoint = kept.checkpoint;
  }
  add_vocabulary(problem, run);
  if (is_sharded(run.vocabulary) && run.blocking && schedule.calls) hold_for_messages(problem);
  return problem;
}

StageCost mean_of(const std::vector<StageCost>& all) {
  StageCost mean;
  const double stages = static_cast<double>(all.size());
  double sent = 0;
  for (const StageCost& stage : all) {
    mean.forward += stage.forward / stages;
    mean.backward_input += stage.backward_input / stages;
    mean.backward_weight += stage.backward_weight / stages;
    mean.activation += stage.activation / stages;
    mean.weight_stash += stage.weight_stash / stages;
    mean.transfer += stage.transfer;
    if (stage.transfer > Seconds(0)) ++sent;
  }
  mean.transfer = sent > 0 ? mean.transfer / sent : Seconds(0);
  return mean;
}

// The median over devices of each device's mean over its chunks.
template <class T>
T typical(const Problem& problem, T StageCost::*what) {
  const Placement& place = problem.placement;
  std::vector<T> devices;
  for (int device = 0; device < place.devices(); ++device) {
    T sum{};
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      sum += problem.stage(place.virtual_stage(device, chunk)).*what;
    }
    devices.push_back(sum / place.chunks(device));
  }
  std::ranges::sort(devices);
  return devices[devices.size() / 2];
}

Problem as_if_equal(Problem problem) {
  const Problem given = problem;
  for (StageCost& stage : problem.stages) {
    stage.forward = typical(given, &StageCost::forward);
    stage.backward_input = typical(given, &StageCost::backward_input);
    stage.backward_weight = typical(given, &StageCost::backward_weight);
    stage.activation = typical(given, &StageCost::activation);
    stage.weight_stash = typical(given, &StageCost::weight_stash);
  }
  return problem;
}

// Adds the step that closes an iteration, on every device: under all-reduce its gradients before
// the norm that joins all, then the rest.
void add_closing(const TimedRun& run, const Layout& layout, const Placement& place,
                 const LayerCosts& costs, BuildOptions& options) {
  for (int device = 0; device < run.devices; ++device) {
    const StepCost step =
        step_cost(run.model, run.setting, run.hardware, layout, place, costs, device);
    const Seconds apart = (run.compute_factor - 1) * step[ClosingTerm::kOptimizer];
    options.gradients_of_device.push_back(step.gradients());
    options.optimizer_of_device.push_back(step.after_norm() + apart);
    if (run.sync != OptimizerSync::kPostValidation) {
      options.collective = std::max(options.collective, step[ClosingTerm::kNorm]);
    }
  }
}

const Schedule& schedule_of(const TimedRun& run) {
  const Schedule* schedule = find_schedule(run.schedule);
  if (schedule == nullptr) throw LogicError("no schedule " + run.schedule);
  return *schedule;
}

}  // namespace

StageCost mean_stage(const TimedRun& given) {
  const TimedRun run = completed(given);
  const Schedule& schedule = schedule_of(run);
  const Placement place = schedule.place(run.devices, run.chunks);
  const LayerCosts costs = costs_of(run);
  return mean_of(problem_of(run, schedule, layout_of(run, place), costs).stages);
}

Seconds iteration_seconds(const TimedRun& given) {
  constexpr int kMaxIterations = 64;
  const TimedRun run = completed(given);
  if (const auto doubt = doubt_of_passes(run.devices, run.chunks, run.microbatches);
      !doubt.empty()) {
    throw InfeasibleError(doubt);
  }
  const Schedule& schedule = schedule_of(run);
  const Placement place = schedule.place(run.devices, run.chunks);
  const Layout layout = layout_of(run, place);
  const LayerCosts costs = costs_of(run);
  const Problem problem = problem_of(run, schedule, layout, costs);
  if (const auto refusal = schedule.refusal(for_planning(problem))) {
    throw InfeasibleError(refusal->reason);
  }
  ScheduleChoice choice;
  choice.name = run.schedule;
  choice.chunks = run.chunks;
  const auto program = make_program(choice, run.plan_as_if_equal ? as_if_equal(problem) : problem);
  BuildOptions options;
  options.sync = run.sync;
  add_closing(run, layout, place, costs, options);
  if (run.blocking && !is_sharded(run.vocabulary)) options.blocking = schedule.calls;
  const bool overlap = run.sync == OptimizerSync::kPostValidation;
  const auto engine = make_replay_engine();
  for (options.iterations = overlap ? 4 : 1;; options.iterations *= 2) {
    const TaskGraph graph = build_task_graph(program, problem, options);
    const Timeline timeline = engine->run(graph, Cluster{}, {});
    if (!overlap || options.iterations == kMaxIterations || is_steady(graph, timeline, 1e-9)) {
      return analyze(graph, timeline).iteration;
    }
  }
}

}  // namespace pipesim
