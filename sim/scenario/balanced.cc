#include "sim/scenario/balanced.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/text.h"
#include "sim/pipeline/evaluate.h"
#include "sim/scenario/problem.h"

namespace pipesim {
namespace {

// Units of which a stage keeps the activation, the stash and the checkpoint at one moment.
struct Held {
  int activations = 0;
  int stashes = 0;
  int checkpoints = 0;

  [[nodiscard]] bool within(const Held& other) const {
    return activations <= other.activations && stashes <= other.stashes &&
           checkpoints <= other.checkpoints;
  }
  [[nodiscard]] Bytes bytes(const StageMemory& memory) const {
    return 1.0 * activations * memory.activation + 1.0 * stashes * memory.weight_stash +
           1.0 * checkpoints * memory.checkpoint;
  }
};

// The moments of which none holds less of everything than another.
using Moments = std::vector<Held>;

void note(Moments& moments, const Held& held) {
  if (std::ranges::any_of(moments, [&](const Held& each) { return held.within(each); })) return;
  std::erase_if(moments, [&](const Held& each) { return each.within(held); });
  moments.push_back(held);
}

// By virtual stage.
void note_moments(const Program& program, std::vector<Moments>& moments) {
  const Placement& place = program.placement();
  std::vector<Held> held(moments.size());
  const auto acquire = [&](int vs, bool again) {
    Held& now = held[static_cast<size_t>(vs)];
    if (again) {
      --now.checkpoints;
      ++now.activations;
    } else {
      ++(program.recomputes(vs) ? now.checkpoints : now.activations);
    }
    note(moments[static_cast<size_t>(vs)], now);
  };
  const auto release = [&](int vs, PassKind kind) {
    Held& now = held[static_cast<size_t>(vs)];
    if (kind != PassKind::kW) --now.activations;
    if (kind == PassKind::kW) --now.stashes;
    if (kind == PassKind::kB) ++now.stashes;
    note(moments[static_cast<size_t>(vs)], now);
  };
  for (int device = 0; device < place.devices(); ++device) {
    for (const Pass& pass : program.passes(device)) {
      if (pass.kind == PassKind::kFB) {
        const OverlappedPair& pair = program.pair(pass);
        acquire(place.virtual_stage(device, pair.forward.chunk), false);
        release(place.virtual_stage(device, pair.backward.chunk), pair.backward.kind);
        continue;
      }
      if (is_vocabulary(pass.kind)) continue;  // they hold nothing of a stage's layers
      const int vs = place.virtual_stage(device, pass.chunk);
      if (pass.kind == PassKind::kF || pass.kind == PassKind::kR) {
        acquire(vs, pass.kind == PassKind::kR);
      } else {
        release(vs, pass.kind);
      }
    }
  }
}

class Balancer {
 public:
  Balancer(const Scenario& scenario, const ScheduleChoice& choice)
      : scenario_(scenario),
        modelled_(*scenario.modelled),
        choice_(choice),
        place_(placement_of(choice, scenario.parallel.pipeline)),
        context_(context_of(modelled_, choice)),
        weights_(layer_weights(scenario, choice)),
        capacity_(capacity_of(scenario)),
        moments_(static_cast<size_t>(place_.virtual_stages())),
        room_(moments_.size()) {}

  std::optional<Layout> run() {
    choice_.balanced = fastest();
    if (!capacity_ || fits()) return choice_.balanced;
    if (place_.chunks() > 1) return with_less_on_full_devices();
    const Bytes all = *capacity_ - kFrameworkOverhead;
    std::ranges::fill(room_, all);
    // What a schedule that plans by bytes holds changes with the split.
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      const auto found = fastest();
      if (!found) break;
      choice_.balanced = found;
      if (fits()) return choice_.balanced;
    }
    return with_less_on_full_devices();
  }

 private:
  // The fastest split whose stages keep to their room.
  std::optional<Layout> fastest() {
    try {
      return balance(modelled_.model, place_.model_stages(), weights_,
                     [this](int stage, const StageLayers& layers) { return fits(stage, layers); });
    } catch (const InfeasibleError&) {
      return std::nullopt;
    }
  }

  [[nodiscard]] Seconds slowest(const Layout& layout) const {
    Seconds most;
    for (const StageLayers& stage : layout.stages) {
      most = std::max(most, stage_seconds(modelled_.model, stage, weights_));
    }
    return most;
  }

  // Of the device that lacks most, the chunk gives a layer away that leaves the fastest split.
  std::optional<Layout> with_less_on_full_devices() {
    for (int left = 2 * static_cast<int>(room_.size()) + modelled_.model.num_layers; !fits();) {
      if (left-- == 0) return std::nullopt;
      const Layout before = *choice_.balanced;
      std::optional<Layout> best;
      std::vector<std::optional<Bytes>> room;
      for (int chunk = 0; chunk < place_.chunks(); ++chunk) {
        const int vs = place_.virtual_stage(fullest_, chunk);
        std::optional<Bytes>& one = room_[static_cast<size_t>(vs)];
        const std::optional<Bytes> kept = one;
        const auto stage = static_cast<size_t>(place_.model_stage(vs));
        one = std::min(use(vs, before.stages[stage]), kept.value_or(*capacity_)) - Bytes(1);
        const auto found = fastest();
        if (found && (!best || slowest(*found) < slowest(*best))) {
          best = found;
          room = room_;
        }
        one = kept;
      }
      if (!best) return std::nullopt;
      choice_.balanced = best;
      room_ = room;
    }
    return choice_.balanced;
  }

  // Whether what the schedule plans with the choice's split fits; notes what its stages hold, and
  // the device that holds most. What cannot be planned, within a memory limit, does not.
  bool fits() {
    try {
      return plan_fits();
    } catch (const InfeasibleError&) {
      return false;
    }
  }

  bool plan_fits() {
    const Problem problem = make_problem(scenario_, choice_);
    const auto program = make_program(choice_, problem);
    moments_.assign(moments_.size(), {});
    note_moments(*program, moments_);
    const Evaluation result = evaluate(*program, problem);
    const MemoryEstimate memory = memory_of(scenario_, choice_);
    Bytes most;
    for (int device = 0; device < place_.devices(); ++device) {
      const auto d = static_cast<size_t>(device);
      const Bytes held = memory.devices[d].total() + result.devices[d].peak_activation;
      if (held <= most) continue;
      most = held;
      fullest_ = device;
    }
    return most <= *capacity_;
  }

  // What the stage's layers and what passes keep of them take of the device.
  Bytes use(int vs, const StageLayers& layers) {
    const auto& [stage_memory, beside] = memory_of_layers(layers);
    Bytes peak;
    for (const Held& held : moments_[static_cast<size_t>(vs)]) {
      peak = std::max(peak, held.bytes(stage_memory) / splits_of(choice_));
    }
    return beside.total() - beside.overhead + peak;
  }

  // With two directions a stage stands on two devices, each with moments of its own.
  bool fits(int stage, const StageLayers& layers) {
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      if (place_.model_stage(vs) != stage) continue;
      const std::optional<Bytes>& room = room_[static_cast<size_t>(vs)];
      if (room && use(vs, layers) > *room) return false;
    }
    return true;
  }

  using Memory = std::pair<StageMemory, DeviceMemory>;

  // Of a device with these layers alone. Layers count by kind, not by number.
  const Memory& memory_of_layers(const StageLayers& layers) {
    const std::tuple key{count(modelled_.model, layers, LayerKind::kDense),
                         count(modelled_.model, layers, LayerKind::kMoe), layers.mtp,
                         layers.embedding, layers.output};
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const MemoryEstimate one = estimate_memory(modelled_.model, context_, Layout{{layers}},
                                               Placement::looped(1, 1), modelled_.state);
    return known_.emplace(key, Memory{one.stages.front(), one.devices.front()}).first->second;
  }

  const Scenario& scenario_;
  const Modelled& modelled_;
  ScheduleChoice choice_;
  Placement place_;
  LayerContext context_;
  LayerSeconds weights_;
  std::optional<Bytes> capacity_;
  std::vector<Moments> moments_;            // of the program planned last, by virtual stage
  std::vector<std::optional<Bytes>> room_;  // beside overhead; none: as much as it takes
  int fullest_ = 0;
  std::map<std::tuple<int, int, int, bool, bool>, Memory> known_;
};

}  // namespace

bool asks_for_balance(const Scenario& scenario) {
  return scenario.modelled && scenario.modelled->split.way == LayerSplit::Way::kBalanced;
}

std::optional<Layout> balanced_layout(const Scenario& scenario, const ScheduleChoice& choice) {
  return Balancer(scenario, choice).run();
}

void settle_balance(Scenario& scenario) {
  if (!asks_for_balance(scenario)) return;
  for (ScheduleChoice& choice : scenario.schedules) {
    choice.balanced = balanced_layout(scenario, choice);
    if (choice.balanced) continue;
    const auto change = change_that_fits(scenario, choice);
    throw InfeasibleError(fmt::format(
        "{}: no split of {}'s layers over {} stages was found that fits in {}; nearest change: {}",
        label_of(choice), scenario.modelled->model.name,
        placement_of(choice, scenario.parallel.pipeline).model_stages(),
        human(*capacity_of(scenario)),
        change ? fmt::format("{} ({})", change->words, human(change->peak)) : "none"));
  }
}

}  // namespace pipesim
