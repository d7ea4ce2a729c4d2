#include "sim/interop/torch/rules.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

constexpr std::uint8_t kForward = 1, kInputGradient = 2, kWeightGradient = 4, kComplete = 7;

// One or two passes that the runtime takes as one action.
struct RuntimeAction {
  std::array<Pass, 2> passes;
  size_t size = 1;
  std::span<const Pass> all() const&& = delete;  // it would outlive them
  [[nodiscard]] std::span<const Pass> all() const& { return {passes.data(), size}; }
};

RuntimeAction action_of(const Program& program, const Pass& pass) {
  if (pass.kind != PassKind::kFB) return {{pass, {}}, 1};
  const OverlappedPair& pair = program.pair(pass);
  return {{pair.forward, pair.backward}, 2};
}

bool known(PassKind kind) {
  return kind == PassKind::kF || kind == PassKind::kB || kind == PassKind::kW ||
         kind == PassKind::kBW;
}

// The part of a program that no cell can express, whatever the order.
std::optional<std::string> beyond_the_form(const Program& program) {
  if (program.placement().directions() != 1) {
    return fmt::format(
        "it runs {} copies of the model, and a stage of PyTorch's stands on one rank",
        program.placement().directions());
  }
  if (program.shape().splits != 1) {
    return fmt::format(
        "it splits a microbatch into {} along the sequence, and an action of PyTorch's is of a "
        "whole microbatch",
        program.shape().splits);
  }
  if (program.copies() != nullptr) {
    return "it copies activations to the host and back, for which PyTorch's schedules have no "
           "action";
  }
  if (program.wrap_around() != WrapAround::kEvery) {
    return "it does not wait for every message at the wrap-around boundary, and PyTorch's runtime "
           "does";
  }
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) {
      const RuntimeAction action = action_of(program, pass);
      for (const Pass& part : action.all()) {
        if (known(part.kind)) continue;
        return fmt::format("it has {} passes such as {}, and PyTorch's actions are F, I, W and B",
                           to_text(part.kind), program.text(device, pass));
      }
    }
  }
  return std::nullopt;
}

// Lowers the program as the runtime does: round after round, the next action of each rank.
class Lowering {
 public:
  explicit Lowering(const Program& program)
      : program_(program),
        place_(program.placement()),
        microbatches_(program.shape().microbatches),
        ran_(static_cast<size_t>(place_.virtual_stages()) * static_cast<size_t>(microbatches_), 0),
        next_(place_.devices(), 0),
        messages_(place_.devices()) {}

  std::vector<std::vector<MessageId>> messages() && { return std::move(messages_); }

  std::optional<std::string> objection() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < place_.devices(); ++rank) {
        const auto passes = program_.passes(rank);
        size_t& next = next_[rank];
        if (next == passes.size()) continue;
        const RuntimeAction action = action_of(program_, passes[next]);
        if (!ready(rank, action)) continue;
        for (const Pass& part : action.all()) {
          if (auto objection = run(rank, part)) return objection;
        }
        ++next;
        progress = true;
      }
    }
    return left_over();
  }

 private:
  std::uint8_t& ran(int stage, std::uint32_t microbatch) {
    return ran_[static_cast<size_t>(stage) * static_cast<size_t>(microbatches_) + microbatch];
  }

  // Both parts of an overlapped action must be ready before either has run.
  bool ready(int rank, const RuntimeAction& action) {
    for (const Pass& part : action.all()) {
      const int stage = place_.virtual_stage(rank, part.chunk);
      const bool forward = part.kind == PassKind::kF;
      if (part.kind == PassKind::kW || (forward ? stage == 0 : stage == last_stage())) continue;
      const int sender = forward ? stage - 1 : stage + 1;
      const std::uint8_t sent = forward ? kForward : kInputGradient;
      if ((ran(sender, part.microbatch) & sent) == 0) return false;
    }
    return true;
  }

  std::optional<std::string> run(int rank, const Pass& part) {
    const int stage = place_.virtual_stage(rank, part.chunk);
    std::uint8_t& state = ran(stage, part.microbatch);
    const auto before = [&](const char* what) {
      return fmt::format("rank {} runs {} before its {}", rank, program_.text(rank, part), what);
    };
    if (part.kind == PassKind::kW) {
      if ((state & kInputGradient) == 0) return before("input gradient");
    } else if (part.kind != PassKind::kF && (state & kForward) == 0) {
      return before("forward");
    }
    if (part.kind == PassKind::kF && stage == last_stage() && part.microbatch != losses_++) {
      return fmt::format(
          "the last stage runs {} out of the order of microbatches, and PyTorch would take "
          "another microbatch's loss for it",
          program_.text(rank, part));
    }
    std::uint8_t done = kForward;
    if (part.kind == PassKind::kB) done = kInputGradient;
    if (part.kind == PassKind::kW) done = kWeightGradient;
    if (part.kind == PassKind::kBW) done = kInputGradient | kWeightGradient;
    if ((state & done) != 0) return fmt::format("{} is there twice", program_.text(rank, part));
    state = static_cast<std::uint8_t>(state | done);
    place_message(rank, part);
    return std::nullopt;
  }

  // The sender's send, and with it the receiver's receive.
  void place_message(int rank, const Pass& part) {
    const StagePass from{part.kind, place_.virtual_stage(rank, part.chunk)};
    const StagePass to = target_of(place_, from);
    if (!to.exists() || place_.device(to.vs) == rank) return;
    const int row = part.kind == PassKind::kF ? from.vs : place_.virtual_stages() + from.vs;
    const auto id = static_cast<MessageId>(row * microbatches_) + part.microbatch;
    messages_[rank].push_back(id);
    messages_[place_.device(to.vs)].push_back(id);
  }

  std::optional<std::string> left_over() {
    for (int rank = 0; rank < place_.devices(); ++rank) {
      const size_t next = next_[rank];
      const auto passes = program_.passes(rank);
      if (next == passes.size()) continue;
      return fmt::format("rank {} would wait for ever before {}: nobody has sent what it receives",
                         rank, program_.text(rank, passes[next]));
    }
    for (int stage = 0; stage <= last_stage(); ++stage) {
      for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
        if (ran(stage, static_cast<std::uint32_t>(microbatch)) == kComplete) continue;
        return fmt::format("stage {} does not run all of microbatch {}", stage, microbatch);
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] int last_stage() const { return place_.virtual_stages() - 1; }

  const Program& program_;
  const Placement& place_;
  int microbatches_;
  std::vector<std::uint8_t> ran_;                 // by stage and microbatch
  std::vector<size_t> next_;                      // by rank: the next of its passes
  std::vector<std::vector<MessageId>> messages_;  // by rank
  std::uint32_t losses_ = 0;
};

}  // namespace

std::optional<std::string> torch_objection(const Program& program) {
  if (auto objection = beyond_the_form(program)) return objection;
  return Lowering(program).objection();
}

std::vector<std::vector<MessageId>> torch_message_order(const Program& program) {
  auto objection = beyond_the_form(program);
  if (objection) throw InfeasibleError("PyTorch's runtime does not run it: " + *objection);
  Lowering lowering(program);
  if (objection = lowering.objection(); objection) {
    throw InfeasibleError("PyTorch's runtime does not run it: " + *objection);
  }
  return std::move(lowering).messages();
}

}  // namespace pipesim
