// Visits the passes of a program in an order in which every pass comes after all that it waits for.
//
// This is the one place that knows which pass waits for which (schedules.md, section 0):
//   F(s,i) <- F(upstream,i); B|BW(s,i) <- B|BW(downstream,i), on the last stage <- F(s,i);
//   W(s,i) <- B(s,i); R(s,i) <- F(s,i), which its own device has run before; with sequence splits F
//   split k <- k-1 and B split k <- k+1 (Seq1F1B); an overlapped block waits for both its passes;
//   with a sharded vocabulary, its passes and the ends of the pipeline for collectives (joins.h),
//   and interlaced passes for all devices to come to them and for the collective after them;
//   with copies to the host, what copy_walk.h says;
//   and every pass for the one before it on its device.
// Evaluation and task graph are visitors, so that they cannot differ.
//
// A device runs on until it must wait, then the next one that can go on does, first come first
// served: neighbouring passes of a device are visited together, which keeps later passes over the
// result in cache. O(passes) time, O(virtual stages x units) space. Throws InfeasibleError when the
// program deadlocks, naming what each device waits for and a cycle of passes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/copy_walk.h"
#include "sim/execution/joins.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Throws InfeasibleError: `position[d]` is where device d is stuck.
[[noreturn]] void report_deadlock(const Program& program,
                                  const std::vector<std::uint32_t>& position);

// Throws as `walk` does when the program cannot be executed.
void check_executable(const Program& program);

// Visitor (Value: a time, a task id; kNotYet and kNothing are values that no result has):
//   Value run(int device, const Pass&, Value input, Value gradient): executes a pass whose awaited
//     messages are `input` (forward) and `gradient` (backward), kNothing where none is awaited.
//   Value deliver(Value result, PassKind kind, int from, int to, unit): hands the result of F or B
//   on
//     virtual stage `from` to stage `to` (-1: nobody waits), returns what the receiver sees.
// For programs with a sharded vocabulary also:
//   Value join(Barrier, unit, span<const Value> results): what those see that wait for it;
//   Value last(int device): the end of what the device did last;
//   void hold(int device, Value): the device goes on after it.
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
        units_(program.shape().units()),
        splits_(static_cast<std::uint32_t>(program.shape().splits)),
        forward_(static_cast<size_t>(place_.virtual_stages()) * units_, Visitor::kNotYet),
        backward_(forward_.size(), Visitor::kNotYet),
        position_(place_.devices(), 0),
        queued_(position_.size(), 1),
        sharded_(is_sharded(program.vocabulary())),
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
      const int device = queue_[head];
      head = (head + 1) % capacity;
      --length;
      queued_[device] = 0;
      length += advance(device);
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

  // Whether the copies are there that the device's next pass waits for.
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

  bool step(int device, const Pass& pass, size_t& woken) {
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
    } else if (is_vocabulary(pass.kind)) {
      return step_vocabulary(device, pass, woken);
    } else {
      if (!ready(device, pass, input, gradient)) return false;
      if (copies_.any() && !copied(device, pass)) return false;
      finish(device, pass, run_pass(device, pass, input, gradient, woken), woken);
    }
    return true;
  }

  bool ready(int device, const Pass& pass, Value& input, Value& gradient) const {
    const int vs = place_.virtual_stage(device, pass.chunk);
    const std::uint32_t unit = pass.microbatch;
    if (pass.kind == PassKind::kF) {
      if (splits_ > 1 && unit % splits_ > 0 && forward_[slot(vs, unit - 1)] == Visitor::kNotYet) {
        return false;
      }
      const int from = place_.upstream(vs);
      if (from < 0) return !sharded_ || joined(Barrier::kEmbedding, unit, input);
      const Value arrived = forward_[slot(from, unit)];
      if (arrived == Visitor::kNotYet) return !waits(from, vs, unit);
      if (waits(from, vs, unit)) input = arrived;
      return true;
    }
    if (pass.kind == PassKind::kW) return backward_[slot(vs, unit)] != Visitor::kNotYet;
    if (pass.kind == PassKind::kR) return true;  // Program has it behind its F
    if (splits_ > 1 && unit % splits_ + 1 < splits_ &&
        backward_[slot(vs, unit + 1)] == Visitor::kNotYet) {
      return false;
    }
    const int from = place_.downstream(vs);
    // On the last stage the loss follows its own forward, which the program order puts before.
    if (from < 0) {
      if (sharded_ && !joined(awaited_by_loss(program_.vocabulary()), unit, gradient)) return false;
      return forward_[slot(vs, unit)] != Visitor::kNotYet;
    }
    const Value arrived = backward_[slot(from, unit)];
    if (arrived == Visitor::kNotYet) return !waits(vs, from, unit);
    if (waits(vs, from, unit)) gradient = arrived;
    return true;
  }

  // Whether the boundary between a stage and its downstream one is waited for (see WrapAround).
  [[nodiscard]] bool waits(int up, int down, std::uint32_t unit) const {
    if (program_.wrap_around() == WrapAround::kEvery) return true;
    const bool wraps = place_.device(up) == place_.devices() - 1 && place_.device(down) == 0;
    return !wraps || unit % static_cast<std::uint32_t>(place_.devices()) == 0;
  }

  void finish(int device, const Pass& pass, Value result, size_t& woken) {
    if (pass.kind == PassKind::kW || pass.kind == PassKind::kR) return;
    const int vs = place_.virtual_stage(device, pass.chunk);
    const bool forward = pass.kind == PassKind::kF;
    const int to = forward ? place_.downstream(vs) : place_.upstream(vs);
    const Value seen = visitor_.deliver(result, pass.kind, vs, to, pass.microbatch);
    (forward ? forward_ : backward_)[slot(vs, pass.microbatch)] = seen;
    if (to >= 0) {
      if (place_.device(to) != device) wake(place_.device(to), woken);
    } else if (sharded_) {
      const Barrier follows = forward ? Barrier::kOutput : Barrier::kEmbeddingGradient;
      close(follows, pass.microbatch, std::span<const Value>(&result, 1), woken);
    }
  }

  void wake(int device, size_t& woken) {
    if (queued_[device] != 0) return;
    queued_[device] = 1;
    queue_[tail_] = device;
    tail_ = (tail_ + 1) % queue_.size();
    ++woken;
  }

  // Whether the collective has been reached; then `seen` is what those see that wait for it.
  bool joined(Barrier barrier, std::uint32_t unit, Value& seen) const {
    const Value value = joins_.of(barrier, unit);
    if (value == Visitor::kNotYet) return false;
    seen = value;
    return true;
  }

  // All that the collective waits for is there.
  void close(Barrier barrier, std::uint32_t unit, std::span<const Value> results, size_t& woken) {
    if constexpr (kJoins) {
      joins_.set(barrier, unit, visitor_.join(barrier, unit, results));
      for (int d = 0; d < place_.devices(); ++d) wake(d, woken);
    }
  }

  bool step_vocabulary(int device, const Pass& pass, size_t& woken) {
    Value input = Visitor::kNothing;
    const auto awaited = awaited_by(pass.kind);
    if (awaited && !joined(*awaited, pass.microbatch, input)) return false;
    if (program_.vocabulary() == VocabularyPlacement::kInterlaced) {
      return step_together(device, pass, input, woken);
    }
    finish_vocabulary(device, pass, run_pass(device, pass, input, Visitor::kNothing, woken), woken);
    return true;
  }

  // Runs the pass on every device once all have come to it; they go on after its collective.
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
        finish_vocabulary(d, pass, run_pass(d, pass, met, Visitor::kNothing, woken), woken);
        if (d == device) continue;
        ++position_[d];
        wake(d, woken);
      }
      const auto after = joined_by(pass.kind, program_.vocabulary());
      for (int d = 0; after && d < place_.devices(); ++d) {
        visitor_.hold(d, joins_.of(*after, pass.microbatch));
      }
    }
    return true;
  }

  void finish_vocabulary(int device, const Pass& pass, Value result, size_t& woken) {
    const auto collective = joined_by(pass.kind, program_.vocabulary());
    if (!collective) return;
    const auto results = joins_.arrive(*collective, device, pass.microbatch, result);
    if (results) close(*collective, pass.microbatch, *results, woken);
  }

  [[nodiscard]] size_t slot(int vs, std::uint32_t unit) const {
    return static_cast<size_t>(vs) * units_ + unit;
  }

  const Program& program_;
  const Placement& place_;
  Visitor& visitor_;
  size_t units_;
  std::uint32_t splits_;
  std::vector<Value> forward_;   // what the receiver of F(vs, unit) sees
  std::vector<Value> backward_;  // what the receiver of B(vs, unit) sees
  std::vector<std::uint32_t> position_;
  std::vector<std::uint8_t> queued_;
  std::vector<int> queue_;
  size_t tail_ = 0;
  bool sharded_;
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
