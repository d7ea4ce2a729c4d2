#include "validate/papers/vocabulary_parallelism/profile.h"

#include <algorithm>
#include <array>

#include "models/layer_cost.h"
#include "models/vocabulary_share.h"
#include "validate/papers/paper_data.h"

namespace pipesim::vocabulary_parallelism {
namespace {

Seconds mean(const std::vector<Seconds>& all, size_t first, size_t end) {
  Seconds sum;
  for (size_t i = first; i < end; ++i) sum += all[i];
  return sum / static_cast<double>(end - first);
}
Seconds mean(const std::vector<Seconds>& all) { return mean(all, 0, all.size()); }
// Mean of the stages that hold layers only.
Seconds between_ends(const std::vector<Seconds>& all) { return mean(all, 1, all.size() - 1); }

CostSetting setting_of(const HostRun& run) {
  CostSetting setting;
  setting.context.seq_length = run.seq;
  setting.context.micro_batch_size = run.micro_batch;
  setting.state.gradients_in_fp32 = false;
  setting.fused_backward = true;
  setting.software = software_of_catalog("megatron-core-2023");
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

  // A ratio of sums weighs each part by its seconds, also those independent of the vocabulary.
  [[nodiscard]] double factor() const { return measured / modelled; }
};

// measured = factor x modelled + beyond x tokens, by least squares over runs. Runs of one
// vocabulary say no more than a factor.
class Line {
 public:
  void add(Seconds measured, Seconds modelled, double tokens) {
    const double x = modelled.value() / tokens;
    const double y = measured.value() / tokens;
    n_ += 1;
    x_ += x;
    y_ += y;
    xx_ += x * x;
    xy_ += x * y;
  }

  [[nodiscard]] double factor() const {
    const double spread = xx_ - x_ * x_ / n_;
    return spread > 1e-9 * xx_ ? (xy_ - x_ * y_ / n_) / spread : y_ / x_;
  }
  // Seconds a token.
  [[nodiscard]] Seconds beyond() const { return Seconds((y_ - factor() * x_) / n_); }

 private:
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

struct Sums {
  Both forward, backward;                // of the layers of a stage
  Line output_forward, output_backward;  // of a divided vocabulary S and T, both in both
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
  for (Line* line : {&sums.output_forward, &sums.output_backward}) {
    line->add(mean(run.output) - of_output, share.output_forward + share.output_backward,
              layer_tokens(setting.context));
  }
  add(sums.input_forward, mean(run.input_forward) - held_by(held, Barrier::kEmbedding),
      share.input_forward);
  add(sums.input_backward, mean(run.input_backward) - held_by(held, Barrier::kEmbeddingGradient),
      share.input_backward);
}

// A stage that waits runs at a higher clock than one that always computes, as the last stage of the
// baseline does. Interlaced passes of the same run, where there are some, say what its layers take.
const HostRun& busy_as_the_last_stage(const HostRun& run, const std::vector<HostRun>& runs) {
  if (is_sharded(run.placement)) return run;
  const auto found = std::ranges::find_if(runs, [&run](const HostRun& each) {
    return each.fault.empty() && each.placement == VocabularyPlacement::kInterlaced &&
           each.devices == run.devices && each.seq == run.seq &&
           each.model.hidden_size == run.model.hidden_size &&
           each.model.vocab_size == run.model.vocab_size;
  });
  return found == runs.end() ? run : *found;
}

void add_run(Sums& sums, const HostRun& run, const std::vector<HostRun>& runs,
             const Hardware& hardware) {
  const CostSetting setting = setting_of(run);
  const LayerCosts costs = layer_costs(run.model, setting, hardware);
  const LayerCost& layer = costs[static_cast<size_t>(LayerKind::kDense)];
  std::array<StageCost, 1> stage{};
  stage[0].forward = layer.forward.total();
  stage[0].backward_input = backward_of(layer);
  if (is_sharded(run.placement)) {
    slow_beside_collectives(run.placement, setting.software, stage);
  }
  const double layers = 1.0 * run.model.num_layers / run.devices;
  const HostRun& busy = busy_as_the_last_stage(run, runs);
  const Seconds forward = between_ends(busy.forward);
  const Seconds backward = between_ends(busy.backward);
  add(sums.forward, forward, layers * stage[0].forward);
  add(sums.backward, backward, layers * stage[0].backward_input);
  ++sums.runs;
  if (is_sharded(run.placement)) {
    add_share(sums, run, setting, hardware);
    return;
  }
  const LayerCost& output = costs[static_cast<size_t>(LayerKind::kOutput)];
  const double tokens = layer_tokens(setting.context);
  sums.output_forward.add(run.forward.back() - forward, output.forward.total(), tokens);
  sums.output_backward.add(run.backward.back() - backward, backward_of(output), tokens);
}

Seconds beyond(const Both& both, double runs) {
  return std::max(Seconds(0), (both.measured - both.modelled) / runs);
}

}  // namespace

Profiled profiled_of(VocabularyPlacement method, int seq, const std::vector<HostRun>& runs,
                     const Hardware& hardware) {
  using enum VocabularyPlacement;
  const VocabularyPlacement wanted = method == kRedistributed ? kFirstLast : method;
  std::vector<const HostRun*> of_method;
  for (const HostRun& run : runs) {
    if (run.fault.empty() && run.placement == wanted && run.devices > 2) of_method.push_back(&run);
  }
  const bool as_long = std::ranges::count(of_method, seq, &HostRun::seq) > 0;
  Sums sums;
  for (const HostRun* run : of_method) {
    if (!as_long || run->seq == seq) add_run(sums, *run, runs, hardware);
  }
  if (sums.runs == 0) return {};
  Profiled profiled;
  profiled.forward = sums.forward.factor();
  profiled.backward_input = profiled.backward_weight = sums.backward.factor();
  profiled.output_forward = sums.output_forward.factor() / sums.forward.factor();
  profiled.output_backward = sums.output_backward.factor() / sums.backward.factor();
  // S and T are fitted together, and each has its half.
  const double part = is_sharded(wanted) ? 0.5 : 1;
  profiled.output_forward_token = part * sums.output_forward.beyond() / sums.forward.factor();
  profiled.output_backward_token = part * sums.output_backward.beyond() / sums.backward.factor();
  profiled.input_forward = beyond(sums.input_forward, sums.runs);
  profiled.input_backward = beyond(sums.input_backward, sums.runs);
  return profiled;
}

}  // namespace pipesim::vocabulary_parallelism
