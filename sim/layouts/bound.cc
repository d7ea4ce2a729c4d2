#include "sim/layouts/bound.h"

#include <algorithm>
#include <vector>

#include "models/memory_model.h"
#include "models/stage_cost.h"
#include "models/vocabulary_share.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

Seconds seconds_of(const VocabularyCost& share) {
  return share.output_forward + share.output_backward + share.input_forward + share.input_backward;
}

// Times of one microbatch on a virtual stage, with R where its chunk recomputes.
struct StageTimes {
  Seconds forward, backward, weight, again;
  Seconds transfer;  // to the next stage

  [[nodiscard]] Seconds all() const { return forward + backward + weight + again; }
};

class Bound {
 public:
  explicit Bound(const Case& made)
      : scenario_(*made.scenario),
        schedule_(schedule_of(made.choice)),
        problem_(made.problem),
        place_(made.placement),
        fused_(schedule_.whole_backward),
        closing_(made.closing) {
    const double part = blocks_of(made.choice) ? least_overlap(problem_) : 1;
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      const StageCost& cost = problem_.stage(vs);
      const Seconds again = recomputes(vs) ? cost.recompute.value_or(cost.forward) : Seconds(0);
      stages_.push_back({part * cost.forward, part * cost.backward_input,
                         part * cost.backward_weight, again, cost.transfer});
    }
    follow_microbatch();
  }

  [[nodiscard]] Seconds iteration() const {
    if (scenario_.sync == OptimizerSync::kPostValidation) {
      Seconds most;
      for (int d = 0; d < place_.devices(); ++d) most = std::max(most, work(d) + closing(d));
      return most;
    }
    Seconds gradients, steps, apart, norm;
    for (int d = 0; d < place_.devices(); ++d) {
      const Seconds end = std::max(before_first(d) + work(d),
                                   place_.device(0) == d ? last_of_first_stage() : Seconds(0));
      const StepCost& step = closing_[d];
      const Seconds reduced = step.gradients();
      gradients = std::max(gradients, end + reduced);
      steps = std::max(steps, closing(d) - reduced);
      apart = std::max(apart, end + closing(d));
      norm = std::max(norm, step[ClosingTerm::kNorm]);
    }
    // The norm of all gradients joins the devices before their steps.
    return norm > Seconds(0) ? gradients + norm + steps : apart;
  }

  [[nodiscard]] Bytes memory(const MemoryEstimate& beside) const {
    Bytes most;
    for (int d = 0; d < place_.devices(); ++d) {
      most = std::max(most, beside.devices[d].total() + activations(d));
    }
    return most;
  }

 private:
  [[nodiscard]] bool recomputes(int vs) const {
    return place_.chunk(vs) < problem_.recompute_chunks;
  }
  [[nodiscard]] const StageTimes& stage(int vs) const { return stages_[vs]; }
  // Units of all microbatches.
  [[nodiscard]] double units() const { return problem_.shape.units(); }

  // The least time from the first F of all to F of every stage, and from the end of its backward to
  // the end of the first stage's.
  void follow_microbatch() {
    forward_start_.resize(stages_.size());
    backward_left_.resize(stages_.size());
    for (size_t vs = 1; vs < stages_.size(); ++vs) {
      const StageTimes& up = stages_[vs - 1];
      forward_start_[vs] = forward_start_[vs - 1] + up.forward + up.transfer;
      backward_left_[vs] =
          backward_left_[vs - 1] + up.backward + up.transfer + (fused_ ? up.weight : Seconds(0));
    }
  }

  [[nodiscard]] Seconds before_first(int device) const {
    // Passes of a shared vocabulary may come before any F.
    if (is_sharded(problem_.vocabulary)) return Seconds(0);
    return forward_start_[place_.virtual_stage(device, 0)];
  }

  [[nodiscard]] Seconds work(int device) const {
    Seconds work;
    for (int c = 0; c < place_.chunks(device); ++c)
      work += stage(place_.virtual_stage(device, c)).all();
    if (is_sharded(problem_.vocabulary)) {
      work += seconds_of(problem_.vocabulary_costs[device]);
    }
    return units() * work;
  }

  // After its last B, or BW, a device's gradient goes the way back to the first stage.
  [[nodiscard]] Seconds last_of_first_stage() const {
    Seconds most;
    for (int d = 0; d < place_.devices(); ++d) {
      Seconds passes;
      Seconds back = backward_left_.back();
      for (int c = 0; c < place_.chunks(d); ++c) {
        const int vs = place_.virtual_stage(d, c);
        const StageTimes& of = stage(vs);
        passes += of.forward + of.backward + of.again + (fused_ ? of.weight : Seconds(0));
        back = std::min(back, backward_left_[vs]);
      }
      const Seconds way = forward_start_.back() + stages_.back().forward + stages_.back().backward +
                          backward_left_.back();
      most = std::max({most, before_first(d) + units() * passes + back, way});
    }
    return most + (fused_ ? Seconds(0) : stages_.front().weight);
  }

  [[nodiscard]] Seconds closing(int device) const {
    const StepCost& step = closing_[device];
    return step.total() - step[ClosingTerm::kNorm];
  }

  [[nodiscard]] Bytes activations(int device) const {
    Bytes all, least_each, last_more, largest;
    for (int c = 0; c < place_.chunks(device); ++c) {
      const int vs = place_.virtual_stage(device, c);
      const StageCost& cost = problem_.stage(vs);
      const Bytes kept = recomputes(vs) ? cost.checkpoint : cost.activation;
      all += kept;
      // Bytes of a unit in flight: before its B, and, where W is a pass of its own, after it.
      const Bytes each = fused_ ? kept : std::min(kept, cost.weight_stash);
      least_each = c == 0 ? each : std::min(least_each, each);
      last_more = cost.activation - kept;
      largest = std::max(largest, cost.activation);
    }
    // A copy may take all but what the running pass needs.
    if (problem_.offload_chunks > 0 || schedule_.offloads()) return largest;
    const PeakClaim& claim = schedule_.claims.peak;
    const bool counts = !is_sharded(problem_.vocabulary) && claim.holds(problem_);
    const Bytes claimed = counts ? claim.in_flight(problem_, device) * least_each : Bytes(0);
    return std::max(all + last_more, claimed);
  }

  const Scenario& scenario_;
  const Schedule& schedule_;
  const Problem& problem_;
  const Placement& place_;
  bool fused_;
  const std::vector<StepCost>& closing_;
  std::vector<StageTimes> stages_;      // by virtual stage
  std::vector<Seconds> forward_start_;  // likewise
  std::vector<Seconds> backward_left_;  // likewise
};

// Layers are whole: some device has `most` of each kind, an even share rounded up. Calls `visit`
// with a stage of one of them.
template <class Visit>
void for_most_of_kind(const Transformer& model, int devices, const Visit& visit) {
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  for (const LayerKind kind : kDecoderKinds) {
    const int number = counts[kind];
    if (number == 0) continue;
    int first = 0;
    while (layer_kind(model, first) != kind) ++first;
    visit(StageLayers{first, 1}, (number + devices - 1) / devices);
  }
}

}  // namespace

Seconds work_bound(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const Transformer& model = scenario.modelled->model;
  const CostSetting& setting = *outline.setting;
  const LayerCosts& costs = *outline.costs;
  const auto work_of = [&](const StageLayers& layers) {
    const StagePasses passes = stage_passes(model, layers, costs);
    // B and W as one pass: apart they wait for the host no less.
    PassCost backward = passes.backward_input;
    backward += passes.backward_weight;
    Seconds work = passes.forward.total() + backward.total();
    if (blocks_of(outline.choice)) {
      work -=
          (1 - scenario.hardware->interconnect.exchange_share) *
          (passes.forward.expert + passes.backward_input.expert + passes.backward_weight.expert);
    }
    if (granularity_of(outline.choice) == RecomputeGranularity::kFull &&
        outline.context->recomputed_layers.all()) {
      work += passes.recompute.total();
    }
    return work;
  };
  const int devices = scenario.parallel.pipeline;
  Seconds of_device = work_of({0, model.num_layers, model.mtp_layers, true, true}) / devices;
  for_most_of_kind(model, devices, [&](const StageLayers& layer, int most) {
    of_device = std::max(of_device, most * work_of(layer));
  });
  of_device += seconds_of(share_cost(model, scenario.vocabulary, setting, *scenario.hardware));
  return scenario.batch.microbatches * of_device;
}

LeastMemory least_memory(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const Transformer& model = scenario.modelled->model;
  LayerContext context = *outline.context;
  context.recomputed_layers = {};
  const MemoryModel memory(model, context, scenario.modelled->state);
  const auto held = [&](std::span<const StageLayers> stages) {
    const DeviceMemory device = memory.device(stages);
    return device.weights + device.gradients + device.optimizer + device.vocabulary;
  };
  const double devices = scenario.parallel.pipeline;
  const StageLayers all{0, model.num_layers, model.mtp_layers, true, true};
  // Every device has what a stage without layers has: messages, a share of the vocabulary.
  const Bytes empty = held({});
  Bytes share = (held({{all}}) - empty) / devices;
  for_most_of_kind(model, scenario.parallel.pipeline, [&](const StageLayers& layer, int most) {
    share = std::max(share, most * (held({{layer}}) - empty));
  });
  const StageMemory stage = memory.stage(all);
  const bool again = context.recompute == RecomputeGranularity::kFull;
  const Bytes kept = again ? std::min(stage.checkpoint, stage.activation) : stage.activation;
  return {memory.device({}).total() + share, kept / (devices * splits_of(outline.choice))};
}

RunBound run_bound(const Case& made) {
  const Bound bound(made);
  return {bound.iteration(), bound.memory(*made.memory)};
}

}  // namespace pipesim
