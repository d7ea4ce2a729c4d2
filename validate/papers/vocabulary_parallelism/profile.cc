#include "validate/papers/vocabulary_parallelism/profile.h"

#include <algorithm>

#include "models/layer_cost.h"
#include "models/vocabulary_share.h"

namespace pipesim::vocabulary_parallelism {
namespace {

Seconds mean(const std::vector<Seconds>& all, size_t first, size_t end) {
  Seconds sum;
  for (size_t i = first; i < end; ++i) sum += all[i];
  return sum / static_cast<double>(end - first);
}
Seconds mean(const std::vector<Seconds>& all) { return mean(all, 0, all.size()); }
// Of the stages that hold layers only.
Seconds between_ends(const std::vector<Seconds>& all) { return mean(all, 1, all.size() - 1); }

CostSetting setting_of(const HostRun& run) {
  CostSetting setting;
  setting.context.seq_length = run.seq;
  setting.context.micro_batch_size = run.micro_batch;
  setting.state.gradients_in_fp32 = false;
  setting.fused_backward = true;
  if (is_sharded(run.placement)) setting.context.vocabulary_devices = run.devices;
  return setting;
}

Seconds backward_of(const LayerCost& cost) {
  return cost.backward_input.total() + cost.backward_weight.total();
}

Seconds held_by(const BarrierSeconds& barriers, Barrier barrier) {
  return barriers[static_cast<size_t>(barrier)];
}

struct Both {
  Seconds measured;
  Seconds modelled;

  // Of sums: what does not grow with the vocabulary has no more weight than its seconds.
  [[nodiscard]] double factor() const { return measured / modelled; }
};

struct Sums {
  Both forward, backward;                // of the layers of a stage
  Both output_forward, output_backward;  // of a divided vocabulary S and T, both in both
  Both input_forward, input_backward;    // of a divided vocabulary
  double runs = 0;
};

void add(Both& sum, Seconds measured, Seconds modelled) {
  sum.measured += measured;
  sum.modelled += modelled;
}

void add_share(Sums& sums, const HostRun& run, const CostSetting& setting,
               const Hardware& hardware) {
  const VocabularyCost share = share_cost(run.model, run.placement, setting, hardware);
  BarrierSeconds held{};
  if (run.placement == VocabularyPlacement::kInterlaced) {
    held = barrier_seconds(run.model, run.placement, setting, hardware);
  }
  const Seconds of_output = held_by(held, Barrier::kOutput) + held_by(held, Barrier::kSoftmax) +
                            held_by(held, Barrier::kOutputGradient);
  for (Both* both : {&sums.output_forward, &sums.output_backward}) {
    add(*both, mean(run.output) - of_output, share.output_forward + share.output_backward);
  }
  add(sums.input_forward, mean(run.input_forward) - held_by(held, Barrier::kEmbedding),
      share.input_forward);
  add(sums.input_backward, mean(run.input_backward) - held_by(held, Barrier::kEmbeddingGradient),
      share.input_backward);
}

void add_run(Sums& sums, const HostRun& run, const Hardware& hardware) {
  const CostSetting setting = setting_of(run);
  const LayerCosts costs = layer_costs(run.model, setting, hardware);
  const LayerCost& layer = costs[static_cast<size_t>(LayerKind::kDense)];
  const double layers = 1.0 * run.model.num_layers / run.devices;
  const Seconds forward = between_ends(run.forward);
  const Seconds backward = between_ends(run.backward);
  add(sums.forward, forward, layers * layer.forward.total());
  add(sums.backward, backward, layers * backward_of(layer));
  ++sums.runs;
  if (is_sharded(run.placement)) {
    add_share(sums, run, setting, hardware);
    return;
  }
  const LayerCost& output = costs[static_cast<size_t>(LayerKind::kOutput)];
  add(sums.output_forward, run.forward.back() - forward, output.forward.total());
  add(sums.output_backward, run.backward.back() - backward, backward_of(output));
}

Seconds beyond(const Both& both, double runs) {
  return std::max(Seconds(0), (both.measured - both.modelled) / runs);
}

}  // namespace

Profiled profiled_of(VocabularyPlacement method, const std::vector<HostRun>& runs,
                     const Hardware& hardware) {
  using enum VocabularyPlacement;
  const VocabularyPlacement wanted = method == kRedistributed ? kFirstLast : method;
  Sums sums;
  for (const HostRun& run : runs) {
    if (run.fault.empty() && run.placement == wanted && run.devices > 2)
      add_run(sums, run, hardware);
  }
  if (sums.runs == 0) return {};
  Profiled profiled;
  profiled.forward = sums.forward.factor();
  profiled.backward_input = profiled.backward_weight = sums.backward.factor();
  profiled.output_forward = sums.output_forward.factor() / sums.forward.factor();
  profiled.output_backward = sums.output_backward.factor() / sums.backward.factor();
  profiled.input_forward = beyond(sums.input_forward, sums.runs);
  profiled.input_backward = beyond(sums.input_backward, sums.runs);
  return profiled;
}

}  // namespace pipesim::vocabulary_parallelism
