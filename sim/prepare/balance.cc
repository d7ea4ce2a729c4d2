#include "sim/prepare/balance.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "models/balance.h"
#include "models/memory_model.h"
#include "models/vocabulary_share.h"
#include "sim/case/problem.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

// What a device keeps at one moment: numbers of activations, stashes and checkpoints of each chunk
// in turn, and last of shares of the output.
using Held = std::vector<double>;
enum Part : size_t { kActivation, kStash, kCheckpoint, kParts };

// The moments of which none holds less of everything than another.
class Moments {
 public:
  explicit Moments(int chunks) : now_(static_cast<size_t>(chunks) * kParts + 1) {}

  double& now(int chunk, Part part) { return now_[static_cast<size_t>(chunk) * kParts + part]; }
  double& shares() { return now_.back(); }

  void note() {
    const auto within = [](const Held& one, const Held& other) {
      return std::equal(one.begin(), one.end(), other.begin(), std::less_equal<>());
    };
    const auto above =
        std::ranges::find_if(all_, [&](const Held& each) { return within(now_, each); });
    if (above != all_.end()) {
      std::iter_swap(all_.begin(), above);  // what comes next is likely near
      return;
    }
    std::erase_if(all_, [&](const Held& each) { return within(each, now_); });
    all_.push_back(now_);
  }
  [[nodiscard]] const std::vector<Held>& all() const { return all_; }

 private:
  Held now_;
  std::vector<Held> all_;
};

void acquire(const Program& program, int device, const Pass& pass, Moments& moments) {
  const bool again = pass.kind == PassKind::kR;
  const int vs = program.placement().virtual_stage(device, pass.chunk);
  const bool whole = again || !program.recomputes(vs);
  if (again) --moments.now(pass.chunk, kCheckpoint);
  ++moments.now(pass.chunk, whole ? kActivation : kCheckpoint);
}

void release(const Pass& pass, Moments& moments) {
  --moments.now(pass.chunk, pass.kind == PassKind::kW ? kStash : kActivation);
  if (pass.kind == PassKind::kB) ++moments.now(pass.chunk, kStash);
}

std::vector<Held> moments_of(const Program& program, int device) {
  Moments moments(program.placement().chunks());
  for (const Pass& pass : program.passes(device)) {
    if (pass.kind == PassKind::kFB) {
      const OverlappedPair& pair = program.pair(pass);
      acquire(program, device, pair.forward, moments);
      moments.note();
      release(pair.backward, moments);
    } else if (is_vocabulary(pass.kind)) {
      if (pass.kind == PassKind::kS) ++moments.shares();
      if (pass.kind == PassKind::kT) --moments.shares();
    } else if (pass.kind == PassKind::kF || pass.kind == PassKind::kR) {
      acquire(program, device, pass, moments);
    } else {
      release(pass, moments);
    }
    moments.note();
  }
  return moments.all();
}

// Devices of a GPU's memory that run a program.
class MemoryRoom : public DeviceRoom {
 public:
  MemoryRoom(const Modelled& modelled, const LayerContext& context, const ScheduleChoice& choice,
             const Placement& place, Bytes capacity)
      : model_(modelled.model, context, modelled.state),
        splits_(splits_of(choice)),
        capacity_(place.devices(), capacity) {
    if (context.vocabulary_devices > 0) share_ = share_activation(modelled.model, context);
    if (const auto* limit = std::get_if<Bytes>(&choice.memory_limit)) limit_ = *limit;
    const bool moe = moe_layers(modelled.model) > 0;
    for (const bool dense : {true, false}) {
      if (dense ? moe_layers(modelled.model) == modelled.model.num_layers : !moe) continue;
      const StageLayers one{.first = dense ? 0 : modelled.model.num_layers - 1, .layers = 1};
      const DeviceMemory held = model_.device({&one, 1});
      const StageMemory kept = model_.stage(one);
      layer_ = std::min(layer_, held.weights + held.gradients + held.optimizer);
      least_.activation = std::min(least_.activation, kept.activation);
      least_.weight_stash = std::min(least_.weight_stash, kept.weight_stash);
      least_.checkpoint = std::min(least_.checkpoint, kept.checkpoint);
    }
  }

  void observe(const Program& program) {
    moments_.clear();
    means_.clear();
    for (size_t device = 0; device < capacity_.size(); ++device) {
      moments_.push_back(moments_of(program, static_cast<int>(device)));
      const std::vector<Held>& all = moments_.back();
      Held mean(all.front().size());
      for (const Held& held : all) {
        for (size_t i = 0; i < mean.size(); ++i)
          mean[i] += held[i] / static_cast<double>(all.size());
      }
      means_.push_back(std::move(mean));
    }
  }
  void take_away(int device, Bytes bytes) { capacity_[device] -= bytes; }

  void limit(Bytes kept) { limit_ = kept; }

  Bytes peak(int device, std::span<const StageLayers> chunks) {
    return model_.device(chunks).total() + kept(device, chunks);
  }

  bool fits(int device, std::span<const StageLayers> chunks) override {
    const Bytes kept_most = kept(device, chunks);
    if (limit_ && kept_most > *limit_) return false;
    return model_.device(chunks).total() + kept_most <= capacity_[device];
  }

  int most_more(int device, std::span<const StageLayers> chunks,
                std::span<const int> open) override {
    if (open.empty()) return 0;
    const DeviceMemory beside = model_.device(chunks);
    // Temporaries may become fewer.
    const Bytes left = capacity_[device] - (beside.total() - beside.buffers);
    double most = std::numeric_limits<int>::max();
    note_stages(chunks);
    const auto bound_by = [&](const Held& held) {
      Bytes least(std::numeric_limits<double>::infinity());
      for (const int chunk : open) least = std::min(least, bytes(held, chunk, least_));
      most = std::min(most, (left - bytes(held)) / (layer_ + least / splits_));
    };
    const auto d = static_cast<size_t>(device);
    for (const Held& held : moments_[d]) bound_by(held);
    // Chunks that weigh least at one moment or another all weigh something in the mean.
    bound_by(means_[d]);
    return most < 0 ? 0 : static_cast<int>(most);
  }

 private:
  static Bytes bytes(const Held& held, int chunk, const StageMemory& memory) {
    const double* numbers = held.data() + static_cast<size_t>(chunk) * kParts;
    return numbers[kActivation] * memory.activation + numbers[kStash] * memory.weight_stash +
           numbers[kCheckpoint] * memory.checkpoint;
  }
  void note_stages(std::span<const StageLayers> chunks) {
    stages_.clear();
    for (const StageLayers& chunk : chunks) stages_.push_back(model_.stage(chunk));
  }
  // Of the stages noted last.
  [[nodiscard]] Bytes bytes(const Held& held) const {
    Bytes sum;
    for (size_t chunk = 0; chunk < stages_.size(); ++chunk) {
      sum += bytes(held, static_cast<int>(chunk), stages_[chunk]);
    }
    return sum / splits_ + held.back() * share_;
  }
  // What passes keep of these layers at most.
  Bytes kept(int device, std::span<const StageLayers> chunks) {
    note_stages(chunks);
    Bytes most;
    for (const Held& held : moments_[device]) {
      most = std::max(most, bytes(held));
    }
    return most;
  }

  MemoryModel model_;
  double splits_;
  Bytes share_;
  std::vector<Bytes> capacity_;             // by device
  std::optional<Bytes> limit_;              // of what passes keep
  std::vector<std::vector<Held>> moments_;  // by device
  std::vector<Held> means_;                 // of each device's
  std::vector<StageMemory> stages_;
  // Of one layer, of either kind the less.
  Bytes layer_{std::numeric_limits<double>::infinity()};
  StageMemory least_{layer_, layer_, layer_};
};

class Balancer {
 public:
  Balancer(const Scenario& scenario, const ScheduleChoice& choice)
      : scenario_(scenario),
        modelled_(*scenario.modelled),
        choice_(choice),
        place_(placement_of(choice, scenario.parallel.pipeline)),
        context_(context_of(modelled_, choice)),
        weights_(layer_weights(scenario, choice)),
        capacity_(modelled_.capacity) {
    const auto* total = std::get_if<TotalLimit>(&choice.memory_limit);
    if (total != nullptr) capacity_ = std::min(total->bytes, capacity_.value_or(total->bytes));
  }

  std::optional<Layout> run() {
    choice_.balanced = balance(modelled_.model, place_, weights_);
    if (!capacity_) return choice_.balanced;
    MemoryRoom room(modelled_, context_, choice_, place_, *capacity_);
    // The first split that is found fits, unless the order of passes follows the split or copies
    // make other moments.
    constexpr int kRounds = 24;
    for (int round = 0; round < kRounds; ++round) {
      if (plan_fits(room, round > 0)) return choice_.balanced;
      const Layout before = *choice_.balanced;
      try {
        choice_.balanced = balance(modelled_.model, place_, weights_, &room);
      } catch (const InfeasibleError&) {
        return std::nullopt;
      }
      if (choice_.balanced == before) return std::nullopt;  // refused for what no split changes
    }
    return std::nullopt;
  }

 private:
  // Whether what the schedule plans with the choice's split fits. If not, `room` is told what the
  // devices hold. Where a split was found with such knowledge and holds more all the same, that
  // much is taken away.
  bool plan_fits(MemoryRoom& room, bool known) {
    const MemoryEstimate memory = memory_of(scenario_, choice_);
    ScheduleChoice choice = choice_;
    Problem problem;
    std::shared_ptr<const Program> program;
    const auto plan = [&] {
      problem = make_problem(scenario_, choice);
      program = make_program(choice, problem);
    };
    bool fits = true;
    try {
      plan();
    } catch (const InfeasibleError&) {  // its memory limit; what it holds is seen without
      fits = false;
      limit_by(memory, room);
      choice.memory_limit = std::monostate();
      plan();
    }
    room.observe(*program);
    const Evaluation result = evaluate(*program, problem);
    for (int device = 0; device < place_.devices(); ++device) {
      const auto d = static_cast<size_t>(device);
      const Bytes peak = memory.devices[d].total() + result.devices[d].peak_activation;
      fits = fits && peak <= *capacity_;
      if (known && peak > *capacity_) room.take_away(device, peak - *capacity_);
      // Copies to the host make room that passes do not show.
      if (!known && program->copies() != nullptr) {
        room.take_away(device, peak - room.peak(device, chunks_of(device)));
      }
    }
    return fits;
  }

  // One limit on activations serves all devices: what the one that holds most beside leaves.
  void limit_by(const MemoryEstimate& memory, MemoryRoom& room) const {
    if (!std::holds_alternative<TotalLimit>(choice_.memory_limit)) return;
    Bytes beside;
    for (const DeviceMemory& device : memory.devices) beside = std::max(beside, device.total());
    room.limit(*capacity_ - beside);
  }

  [[nodiscard]] std::vector<StageLayers> chunks_of(int device) const {
    std::vector<StageLayers> chunks;
    for (int chunk = 0; chunk < place_.chunks(); ++chunk) {
      const int stage = place_.model_stage(place_.virtual_stage(device, chunk));
      chunks.push_back(choice_.balanced->stages[stage]);
    }
    return chunks;
  }

  const Scenario& scenario_;
  const Modelled& modelled_;
  ScheduleChoice choice_;
  Placement place_;
  LayerContext context_;
  LayerSeconds weights_;
  std::optional<Bytes> capacity_;
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
  }
}

void refuse_unbalanced(const Scenario& scenario, const ScheduleChoice& choice) {
  if (!asks_for_balance(scenario) || choice.balanced) return;
  Bytes within =
      scenario.modelled->capacity.value_or(Bytes(std::numeric_limits<double>::infinity()));
  if (const auto* total = std::get_if<TotalLimit>(&choice.memory_limit)) {
    within = std::min(within, total->bytes);
  }
  const auto change = change_that_fits(scenario, choice);
  throw InfeasibleError(fmt::format(
      "{}: no split of {}'s layers over {} stages was found that fits in {}; nearest change: {}",
      label_of(choice), scenario.modelled->model.name,
      placement_of(choice, scenario.parallel.pipeline).model_stages(), human(within),
      change ? fmt::format("{} ({})", change->words, human(change->peak)) : "none"));
}

}  // namespace pipesim
