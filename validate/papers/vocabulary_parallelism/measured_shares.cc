// Iteration times from devices' measured times, of the methods that divide the vocabulary.
#include <algorithm>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_parallelism {
namespace {

// S and T are measured together; of their three matmuls vocab-2 runs two before the barrier.
double share_of_s(VocabularyPlacement placement) {
  return placement == VocabularyPlacement::kVocab2 ? 2.0 / 3 : 1.0 / 3;
}

Seconds longest_step(const HostRun& run, const CostSetting& setting, const Hardware& hardware,
                     const Placement& place) {
  const Layout layout = even_layout(run.model, place, {});
  const LayerCosts costs = layer_costs(run.model, setting, hardware);
  Seconds step;
  for (int d = 0; d < run.devices; ++d) {
    step = std::max(step, step_cost(run.model, setting, hardware, layout, place, costs, d).total());
  }
  return step;
}

}  // namespace

Seconds seconds_from_shares(const HostRun& run, const Hardware& hardware) {
  Problem problem;
  problem.shape = {run.devices, 1, run.microbatches, 1};
  problem.placement = Placement::looped(run.devices, 1);
  CostSetting setting;
  setting.context.seq_length = run.seq;
  setting.context.micro_batch_size = run.micro_batch;
  setting.context.vocabulary_devices = run.devices;
  setting.state.gradients_in_fp32 = false;
  const Seconds message = message_seconds(run.model, setting, hardware, {}, 0, 1);
  problem.vocabulary = run.placement;
  const double early = share_of_s(run.placement);
  for (size_t d = 0; d < run.forward.size(); ++d) {
    StageCost stage;
    stage.forward = run.forward[d];
    stage.backward_input = stage.backward_weight = run.backward[d] / 2;  // run as one
    if (d + 1 < run.forward.size()) stage.transfer = message;
    problem.stages.push_back(stage);
    problem.vocabulary_costs.push_back({early * run.output[d],
                                        (1 - early) * run.output[d],
                                        run.input_forward[d],
                                        run.input_backward[d],
                                        {}});
  }
  // Interlaced passes hold the device for their collectives: they are in what was measured.
  if (run.placement != VocabularyPlacement::kInterlaced) {
    problem.barriers = barrier_seconds(run.model, run.placement, setting, hardware);
  }
  const Program program = find_schedule("1f1b")->plan(problem);
  return evaluate(program, problem).makespan +
         longest_step(run, setting, hardware, problem.placement);
}

}  // namespace pipesim::vocabulary_parallelism
