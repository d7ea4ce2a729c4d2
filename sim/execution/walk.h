// Visits the passes of a program in an order in which every pass comes after all that it waits for.
//
// A pass waits for its inputs (sim/pipeline/dependencies.h), for the pass before it on its device,
// and for its copies to the host (copy_walk.h). An overlapped block waits for the inputs of both
// its passes. A pass of an interlaced vocabulary waits until all devices have reached it; its
// successors wait for its collective. Evaluation and task graph are visitors, so that they cannot
// differ.
//
// A device runs on until it must wait; then the next one that can go on does, first come first
// served. Neighbouring passes of a device are visited together, which keeps later loops over the
// result in cache. O(passes) time, O(virtual stages x units) space. Throws DeadlockError when the
// program deadlocks, naming the input that each device waits for and a cycle of passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/grid.h"
#include "sim/core/stop.h"
#include "sim/execution/copy_walk.h"
#include "sim/execution/joins.h"
#include "sim/pipeline/dependencies.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// One cycle of passes that wait for each other, or, where copies are waited for, one such pass.
struct Deadlock {
  int device = 0;  // of the first pass, and where it stands in the device's list
  int position = 0;
  std::string text;  // "0B0 needs 1B0, which stands behind 1F1 needs 0F1, ..."
};

class DeadlockError : public InfeasibleError {
 public:
  DeadlockError(const std::string& message, std::vector<std::uint32_t> stuck)
      : InfeasibleError(message), stuck_(std::move(stuck)) {}
  // The first deadlock of the program. O(passes x devices).
  [[nodiscard]] Deadlock first(const Program& program, const NamePass& name) const;

 private:
  std::vector<std::uint32_t> stuck_;  // by device: where
};

// Throws DeadlockError: `position[d]` is where device d is stuck.
[[noreturn]] void report_deadlock(const Program& program,
                                  const std::vector<std::uint32_t>& position);

// Throws as `walk` does when the program cannot be executed.
void check_executable(const Program& program);

// Visitor (Value: a time, a task id; kNotYet and kNothing are values that no result has):
//   Value run(int device, const Pass&, Value input, Value gradient): executes a pass whose awaited
//     messages are `input` (forward) and `gradient` (backward), kNothing where none is awaited.
//   Value deliver(Value result, PassKind kind, int from, int to, unit): hands the result of F or B
//     from virtual stage `from` to `to` (-1: nobody waits), returns the value that the receiver
//     sees.
// For programs with a sharded vocabulary also:
//   Value join(Barrier, unit, span<const Value> results): the value for those that wait for it;
//   Value last(int device): the end of the device's last task;
//   void hold(int device, Value): the device goes on after it.
// A visitor that may give up has
//   bool hopeless() const: true if the rest need not be visited.
// For programs with copies also:
//   Value copy(const Copy&, bool out, Value a, Value b): one that waits for both and for the one
//     before it in its direction of its link;
//   void await(int device, Value): the next pass of the device waits for it too.
template <class Visitor>
void walk(const Program& program, Visitor& visitor);

// ---- implementation ----

namespace walk_detail {

template <class Visitor>
class Walker {
 public:
  using Value = typename Visitor::Value;
  static constexpr bool kJoins = requires(Visitor & visitor, Value value) {
    visitor.hold(0, value);
  };
  static constexpr bool kCopies = requires(Visitor & visitor, Value value) {
    visitor.await(0, value);
  };

  Walker(const Program& program, Visitor& visitor)
      : program_(program),
        place_(program.placement()),
        visitor_(visitor),
        splits_(static_cast<std::uint32_t>(program.shape().splits)),
        forward_(place_.virtual_stages(), program.shape().units(), Visitor::kNotYet),
        backward_(forward_),
        position_(place_.devices(), 0),
        queued_(position_.size(), 1),
        sharded_(is_sharded(program.vocabulary())),
        together_(program.vocabulary() == VocabularyPlacement::kInterlaced),
        joins_(program, Visitor::kNotYet),
        copies_(program, Visitor::kNotYet) {
    if (copies_.any() && !kCopies) throw LogicError("this visitor knows no copies");
    if (sharded_ && !kJoins) throw LogicError("this visitor knows no vocabulary passes");
    for (int d = 0; d < place_.devices(); ++d) queue_.push_back(d);
  }

  void run() {
    // A ring: at most one entry per device is queued at any time.
    const size_t capacity = queue_.size();
    size_t head = 0;
    size_t length = capacity;
    tail_ = 0;
    while (length > 0) {
      check_stop();
      const int device = queue_[head];
      head = (head + 1) % capacity;
      --length;
      queued_[device] = 0;
      length += advance(device);
      if constexpr (requires { visitor_.hopeless(); }) {
        if (visitor_.hopeless()) return;
      }
    }
    for (int d = 0; d < place_.devices(); ++d) {
      if (position_[d] < program_.passes(d).size()) {
        report_deadlock(program_, position_);
      }
    }
  }

 private:
  // Runs the device until it waits or is done; returns how many devices were woken.
  size_t advance(int device) {
    size_t woken = 0;
    const auto passes = program_.passes(device);
    std::uint32_t& at = position_[device];
    while (at < passes.size() && step(device, passes[at], woken)) ++at;
    return woken;
  }

  // True if the copies that the device's next pass waits for have ended.
  bool copied(int device, const Pass& pass) {
    if constexpr (kCopies) {
      return copies_.ready(device, position_[device], pass,
                           [&](Value end) { visitor_.await(device, end); });
    }
    return true;
  }

  Value run_pass(int device, const Pass& pass, Value input, Value gradient, size_t& woken) {
    const Value result = visitor_.run(device, pass, input, gradient);
    if constexpr (kCopies) {
      if (!copies_.any()) return result;
      copies_.ran(device, position_[device], pass, result,
                  [&](const Copy& copy, bool out, Value a, Value b) {
                    const auto of = static_cast<int>(copy.device);
                    if (of != device) wake(of, woken);
                    return visitor_.copy(copy, out, a, b);
                  });
    }
    return result;
  }

  // Runs the pass if it can; true if it ran. Flat, since calls cost more here than most of their
  // bodies.
  [[gnu::flatten]] bool step(int device, const Pass& pass, size_t& woken) {
    Value input = Visitor::kNothing;
    Value gradient = Visitor::kNothing;
    if (pass.kind == PassKind::kFB) {
      const OverlappedPair& pair = program_.pair(pass);
      if (!ready(device, pair.forward, input, gradient)) return false;
      if (!ready(device, pair.backward, input, gradient)) return false;
      if (copies_.any() && !copied(device, pass)) return false;
      const Value result = run_pass(device, pass, input, gradient, woken);
      finish(device, pair.forward, result, woken);
      finish(device, pair.backward, result, woken);
      return true;
    }
    if (!ready(device, pass, input, gradient)) return false;
    if (is_vocabulary(pass.kind)) {
      if (together_) return step_together(device, pass, input, woken);
    } else if (copies_.any() && !copied(device, pass)) {
      return false;
    }
    finish(device, pass, run_pass(device, pass, input, gradient, woken), woken);
    return true;
  }

  // True if all inputs of the pass have come; then `input` or `gradient` is its message.
  bool ready(int device, const Pass& pass, Value& input, Value& gradient) const {
    const StagePass at = stage_pass(device, pass);
    const std::uint32_t unit = pass.microbatch;
    Value& message = is_backward(at.kind) ? gradient : input;
    if (splits_ > 1 && !split_is_ready(at, unit)) return false;
    if (sharded_ && !joined(collective_before(place_, program_.vocabulary(), at), unit, message)) {
      return false;
    }
    const StagePass source = source_of(place_, at);
    if (!source.exists()) return true;
    const Value arrived = results(source.kind)(source.vs, unit);
    if (source.vs == at.vs) return arrived != Visitor::kNotYet;
    if (!waits(source.vs, at.vs, unit)) return true;
    message = arrived;
    return arrived != Visitor::kNotYet;
  }

  [[nodiscard]] bool split_is_ready(const StagePass& at, std::uint32_t unit) const {
    const auto before = split_before(at.kind, unit, splits_);
    return !before || results(at.kind)(at.vs, *before) != Visitor::kNotYet;
  }

  // True if a message between neighbouring stages is waited for (see WrapAround).
  [[nodiscard]] bool waits(int from, int to, std::uint32_t unit) const {
    if (program_.wrap_around() == WrapAround::kEvery) return true;
    const auto [up, down] = std::minmax(from, to);
    const bool wraps = place_.device(up) == place_.devices() - 1 && place_.device(down) == 0;
    return !wraps || unit % static_cast<std::uint32_t>(place_.devices()) == 0;
  }

  void finish(int device, const Pass& pass, Value result, size_t& woken) {
    const StagePass at = stage_pass(device, pass);
    if (at.kind == PassKind::kF || is_backward(at.kind)) {
      const int to = message_to(at);
      results(at.kind)(at.vs, pass.microbatch) =
          visitor_.deliver(result, at.kind, at.vs, to, pass.microbatch);
      if (to >= 0 && place_.device(to) != device) wake(place_.device(to), woken);
    }
    if constexpr (kJoins) {
      if (!sharded_) return;
      const auto collective = collective_after(place_, program_.vocabulary(), at);
      if (collective) arrive(*collective, device, pass.microbatch, result, woken);
    }
  }

  // -1: the result stays on its stage, or nobody waits for it.
  [[nodiscard]] int message_to(const StagePass& at) const {
    const int to = target_of(place_, at).vs;
    return to == at.vs ? -1 : to;
  }

  void wake(int device, size_t& woken) {
    if (queued_[device] != 0) return;
    queued_[device] = 1;
    queue_[tail_] = device;
    tail_ = (tail_ + 1) % queue_.size();
    ++woken;
  }

  // True if the collective has been reached or there is none; then `seen` is its value for those
  // that wait for it.
  bool joined(std::optional<Barrier> barrier, std::uint32_t unit, Value& seen) const {
    if (!barrier) return true;
    seen = joins_.of(*barrier, unit);
    return seen != Visitor::kNotYet;
  }

  // Records a result that the collective waits for; with the last one, the collective goes.
  void arrive(Barrier barrier, int device, std::uint32_t unit, Value result, size_t& woken) {
    const auto results = joins_.arrive(barrier, device, unit, result);
    if (results.empty()) return;
    joins_.set(barrier, unit, visitor_.join(barrier, unit, results));
    for (int d = 0; d < place_.devices(); ++d) wake(d, woken);
  }

  // Runs the pass on every device once all have reached it; they go on after its collective.
  bool step_together(int device, const Pass& pass, Value input, size_t& woken) {
    for (int d = 0; d < place_.devices(); ++d) {
      const std::uint32_t at = position_[d];
      if (at == program_.passes(d).size() || program_.passes(d)[at] != pass) return false;
    }
    if constexpr (kJoins) {
      gathered_.clear();
      for (int d = 0; d < place_.devices(); ++d) gathered_.push_back(visitor_.last(d));
      gathered_.push_back(input);
      const Value met = visitor_.join(Barrier::kRendezvous, pass.microbatch, gathered_);
      for (int d = 0; d < place_.devices(); ++d) {
        finish(d, pass, run_pass(d, pass, met, Visitor::kNothing, woken), woken);
        if (d == device) continue;
        ++position_[d];
        wake(d, woken);
      }
      const auto after = collective_after(place_, program_.vocabulary(), stage_pass(device, pass));
      for (int d = 0; after && d < place_.devices(); ++d) {
        visitor_.hold(d, joins_.of(*after, pass.microbatch));
      }
    }
    return true;
  }

  [[nodiscard]] StagePass stage_pass(int device, const Pass& pass) const {
    return {pass.kind, place_.virtual_stage(device, pass.chunk)};
  }
  [[nodiscard]] Grid<Value>& results(PassKind kind) {
    return kind == PassKind::kF ? forward_ : backward_;
  }
  [[nodiscard]] const Grid<Value>& results(PassKind kind) const {
    return kind == PassKind::kF ? forward_ : backward_;
  }

  const Program& program_;
  const Placement& place_;
  Visitor& visitor_;
  std::uint32_t splits_;
  Grid<Value> forward_;   // what the receiver of F sees, by stage and unit
  Grid<Value> backward_;  // what the receiver of B sees
  std::vector<std::uint32_t> position_;
  std::vector<std::uint8_t> queued_;
  std::vector<int> queue_;
  size_t tail_ = 0;
  bool sharded_;
  bool together_;  // all devices run a vocabulary pass at once
  Joins<Value> joins_;
  CopyWalk<Value> copies_;
  std::vector<Value> gathered_;
};

}  // namespace walk_detail

template <class Visitor>
void walk(const Program& program, Visitor& visitor) {
  walk_detail::Walker<Visitor>(program, visitor).run();
}

}  // namespace pipesim
