#include "validate/papers/peak_memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "models/layer_work.h"
#include "models/vocabulary_share.h"
#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/schedule.h"
#include "validate/papers/paper_keys.h"

namespace pipesim {
namespace {

// In units that only their ratio matters of.
DeviceSeconds by_work(const MeasuredRun& run) {
  const auto of = [&](PassKind pass) {
    return Seconds(flops(layer_work(run.model, LayerKind::kDense, pass, run.context)).value() *
                   1e-15);
  };
  return {of(PassKind::kF), of(PassKind::kB), of(PassKind::kW), Seconds(0)};
}

// In the same unit; collectives take no time.
VocabularyCost share_by_work(const MeasuredRun& run, const LayerContext& context) {
  const auto of = [&](PassKind pass) {
    return Seconds(flops(share_work(run.model, pass, run.vocabulary, context)).value() * 1e-15);
  };
  VocabularyCost share;
  share.output_forward = of(PassKind::kS);
  share.output_backward = of(PassKind::kT);
  share.output_activation = share_activation(run.model, context);
  return share;
}

// By device.
struct Peaks {
  std::vector<Bytes> activations;
  std::vector<DeviceMemory> beside;
};

Peaks peaks_of(const MeasuredRun& run) {
  const Schedule* schedule = find_schedule(run.schedule);
  if (schedule == nullptr) throw LogicError("no schedule " + run.schedule);
  if (const auto doubt = doubt_of_passes(run.devices, run.chunks, run.microbatches);
      !doubt.empty()) {
    throw InfeasibleError(doubt);
  }
  Problem problem;
  problem.placement = schedule->place(run.devices, run.chunks);
  const Placement& place = problem.placement;
  problem.shape = {run.devices, run.chunks, run.microbatches, 1};
  const Layout layout = even_layout(run.model, place, run.split);
  LayerContext context = run.context;
  if (is_sharded(run.vocabulary)) {
    context.vocabulary_devices = run.devices;
    problem.vocabulary = run.vocabulary;
    problem.vocabulary_costs.assign(run.devices, share_by_work(run, context));
  }
  const MemoryEstimate memory = estimate_memory(run.model, context, layout, place, run.state);
  const DeviceSeconds seconds = run.seconds.value_or(by_work(run));
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageMemory& kept = memory.stages[place.model_stage(vs)];
    StageCost cost;
    cost.forward = seconds.forward / run.chunks;
    cost.backward_input = seconds.backward_input / run.chunks;
    cost.backward_weight = seconds.backward_weight / run.chunks;
    const int next = place.downstream(vs);
    if (next >= 0 && place.device(next) != place.device(vs)) cost.transfer = seconds.transfer;
    cost.activation = kept.until_backward(run.context.recompute == RecomputeGranularity::kFull);
    cost.weight_stash = kept.weight_stash;
    cost.checkpoint = kept.checkpoint;
    problem.stages.push_back(cost);
  }
  const Problem planning = for_planning(problem);
  if (const auto refusal = schedule->refusal(planning)) throw InfeasibleError(refusal->reason);
  Program program = schedule->plan(planning);
  if (run.context.recompute == RecomputeGranularity::kFull) {
    program = with_recompute(program, run.chunks);
  }
  Peaks peaks{{}, memory.devices};
  for (const DeviceEvaluation& device : evaluate(program, problem).devices) {
    peaks.activations.push_back(device.peak_activation);
  }
  return peaks;
}

}  // namespace

Bytes allocated_at_peak(const MeasuredRun& run) {
  const Peaks peaks = peaks_of(run);
  Bytes most;
  for (size_t device = 0; device < peaks.beside.size(); ++device) {
    const DeviceMemory& beside = peaks.beside[device];
    most = std::max(most, peaks.activations[device] + beside.total() - beside.overhead);
  }
  return most;
}

Bytes added_at_peak(const MeasuredRun& run) {
  const Peaks peaks = peaks_of(run);
  Bytes most;
  for (size_t device = 0; device < peaks.beside.size(); ++device) {
    most = std::max(most, peaks.activations[device] + peaks.beside[device].buffers);
  }
  return most;
}

}  // namespace pipesim
