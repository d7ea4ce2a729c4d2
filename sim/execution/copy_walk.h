// The dependencies of copies to the host, for `walk`.
//
//   copy out(s,i) <- F(s,i), and the one before it on its link;
//   copy back(s,i) <- copy out(s,i), the pass that it is to follow, and the one before it;
//   R(s,i), or B|BW(s,i) where nothing is recomputed <- copy back(s,i);
//   a gated pass <- the copy out that makes room for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The copies of one program as they are reached; Value as a visitor of `walk` has it.
template <class Value>
class CopyWalk {
 public:
  CopyWalk(const Program& program, Value not_yet)
      : program_(program), plan_(program.copies()), not_yet_(not_yet) {
    if (plan_ == nullptr) return;
    const Placement& place = program.placement();
    out_at_ = Grid<std::uint32_t>(place.virtual_stages(), program.shape().units(), kNone);
    back_at_ = out_at_;
    triggers_.resize(place.devices());
    next_trigger_.assign(triggers_.size(), 0);
    next_gate_.assign(triggers_.size(), 0);
    for (const LinkCopies& link : plan_->links) add(link);
    for (auto& of_device : triggers_) std::ranges::sort(of_device, {}, &Trigger::after);
  }

  [[nodiscard]] bool any() const { return plan_ != nullptr; }

  // Calls `wait` with each input of the pass at this position; false when one is missing.
  template <class Wait>
  bool ready(int device, std::uint32_t position, const Pass& pass, Wait wait) {
    Value room = not_yet_;
    const bool gated = gate(device, position, room);
    if (gated && room == not_yet_) return false;
    const std::uint32_t back = needed_by(device, pass);
    if (back != kNone && back_[back] == not_yet_) return false;
    if (gated) wait(room);
    if (back != kNone) wait(back_[back]);
    return true;
  }

  // The pass has run. Calls `copy(copy, is_out, a, b)` for each that can go now, which returns its
  // end; a and b are what it waits for.
  template <class Run>
  void ran(int device, std::uint32_t position, const Pass& pass, Value result, Run copy) {
    const auto& gates = plan_->gates[device];
    size_t& gate = next_gate_[device];
    if (gate < gates.size() && gates[gate].position == position) ++gate;
    const size_t link = plan_->link_of(static_cast<std::uint32_t>(device));
    bool moved = false;
    const Pass& forward = pass.kind == PassKind::kFB ? program_.pair(pass).forward : pass;
    if (forward.kind == PassKind::kF) {
      const std::uint32_t out = out_at_(stage(device, forward), forward.microbatch);
      if (out != kNone) {
        made_[out] = result;
        moved = true;
      }
    }
    auto& triggers = triggers_[device];
    for (auto& next = next_trigger_[device];
         next < triggers.size() && triggers[next].after == position; ++next) {
      follows_[triggers[next].back] = result;
      moved = true;
    }
    if (moved) advance(link, copy);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Trigger {
    std::uint32_t after;
    std::uint32_t back;  // number of the copy back
  };
  // Numbers of the copies of one link: [begin, end) as they stand in the plan, and the next to go.
  struct State {
    std::uint32_t begin_out, next_out, end_out;
    std::uint32_t begin_back, next_back, end_back;
  };

  void add(const LinkCopies& link) {
    State state{};
    state.begin_out = state.next_out = static_cast<std::uint32_t>(out_.size());
    for (const Copy& copy : link.out) {
      out_at_(stage(copy), copy.unit) = static_cast<std::uint32_t>(out_.size());
      out_.push_back(not_yet_);
      made_.push_back(not_yet_);
    }
    state.end_out = static_cast<std::uint32_t>(out_.size());
    state.begin_back = state.next_back = static_cast<std::uint32_t>(back_.size());
    for (const Copy& copy : link.in) {
      const auto number = static_cast<std::uint32_t>(back_.size());
      back_at_(stage(copy), copy.unit) = number;
      out_of_back_.push_back(out_at_(stage(copy), copy.unit));
      back_.push_back(not_yet_);
      follows_.push_back(not_yet_);
      if (copy.after != Copy::kAnyTime) triggers_[copy.device].push_back({copy.after, number});
    }
    state.end_back = static_cast<std::uint32_t>(back_.size());
    links_.push_back(state);
  }

  template <class Run>
  void advance(size_t number, Run& run) {
    State& link = links_[number];
    const LinkCopies& plan = plan_->links[number];
    for (; link.next_out < link.end_out && made_[link.next_out] != not_yet_; ++link.next_out) {
      const Value made = made_[link.next_out];
      out_[link.next_out] = run(plan.out[link.next_out - link.begin_out], true, made, made);
    }
    for (; link.next_back < link.end_back; ++link.next_back) {
      const Copy& copy = plan.in[link.next_back - link.begin_back];
      const Value out = out_[out_of_back_[link.next_back]];
      const Value follows = copy.after == Copy::kAnyTime ? out : follows_[link.next_back];
      if (out == not_yet_ || follows == not_yet_) break;
      back_[link.next_back] = run(copy, false, out, follows);
    }
  }

  bool gate(int device, std::uint32_t position, Value& room) const {
    const auto& gates = plan_->gates[device];
    const size_t next = next_gate_[device];
    if (next == gates.size() || gates[next].position != position) return false;
    const State& link = links_[plan_->link_of(static_cast<std::uint32_t>(device))];
    room = out_[link.begin_out + gates[next].out];
    return true;
  }

  // The copy back that the pass is the first to need.
  [[nodiscard]] std::uint32_t needed_by(int device, const Pass& pass) const {
    const Pass& user = pass.kind == PassKind::kFB ? program_.pair(pass).backward : pass;
    const bool backward = is_backward(user.kind);
    if (!backward && user.kind != PassKind::kR) return kNone;
    const int vs = stage(device, user);
    if (backward && program_.recomputes(vs)) return kNone;
    return back_at_(vs, user.microbatch);
  }

  [[nodiscard]] int stage(int device, const Pass& pass) const {
    return program_.placement().virtual_stage(device, pass.chunk);
  }
  [[nodiscard]] int stage(const Copy& copy) const {
    return program_.placement().virtual_stage(static_cast<int>(copy.device), copy.chunk);
  }

  const Program& program_;
  const CopyPlan* plan_;
  Value not_yet_;
  Grid<std::uint32_t> out_at_, back_at_;  // by virtual stage and unit: number of its copy
  std::vector<Value> out_, back_;         // ends, by number
  std::vector<Value> made_;               // by number of a copy out: the end of its F
  std::vector<Value> follows_;            // by number of a copy back: the end of `after`
  std::vector<std::uint32_t> out_of_back_;
  std::vector<std::vector<Trigger>> triggers_;  // by device, by position
  std::vector<size_t> next_trigger_, next_gate_;
  std::vector<State> links_;
};

}  // namespace pipesim
