#include "sim/execution/evaluate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "sim/core/error.h"
#include "sim/execution/pair_seconds.h"
#include "sim/execution/walk.h"

namespace pipesim {
namespace {

class TimeVisitor {
 public:
  using Value = double;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  TimeVisitor(const Program& program, const Problem& problem, Seconds most)
      : program_(program), problem_(problem), devices_(problem.shape.devices) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      devices_[d].spare = (most - least_work(static_cast<int>(d))).value();
    }
    if (program.copies() == nullptr) return;
    links_.resize(program.copies()->links.size());
    changes_.resize(devices_.size());
  }

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    State& state = devices_[device];
    const double start = std::max({state.clock, input, gradient});
    const double seconds = pass_seconds(problem_, program_, device, pass).value();
    if (!state.started) state.first_start = start;
    state.started = true;
    const double since = problem_.objective == Objective::kMakespan ? 0 : state.first_start;
    hopeless_ = hopeless_ || start - since - state.busy > state.spare;
    state.clock = state.ended = start + seconds;
    state.busy += seconds;
    account(state, device, pass, start);
    return state.clock;
  }

  Value join(Barrier barrier, std::uint32_t unit, std::span<const Value> results) {
    return std::ranges::max(results) + problem_.barrier(barrier, unit).value();
  }
  [[nodiscard]] Value last(int device) const { return devices_[device].clock; }
  void hold(int device, Value until) {
    double& clock = devices_[device].clock;
    clock = std::max(clock, until);
  }
  void await(int device, Value until) { hold(device, until); }
  Value copy(const Copy& copy, bool out, Value a, Value b) {
    double& link = links_[program_.copies()->link_of(copy.device)][out ? 0 : 1];
    const double start = std::max({link, a, b});
    link = start + copy_seconds(problem_, program_, copy, out).value();
    const double bytes = copied_bytes(problem_, program_, copy).value();
    changes_[copy.device].push_back(out ? Change{link, -bytes} : Change{start, bytes});
    return link;
  }
  Value deliver(Value result, PassKind /*kind*/, int from, int to, std::uint32_t unit) {
    return to < 0 ? result : result + problem_.transfer(from, to, unit).value();
  }

  // True if a device idles more than it has to spare.
  [[nodiscard]] bool hopeless() const { return hopeless_; }

  [[nodiscard]] Evaluation finish() {
    for (size_t d = 0; d < changes_.size(); ++d) devices_[d].peak = peak_of(changes_[d]);
    Evaluation result;
    double first = devices_.front().first_start;
    double last = 0;
    for (const State& state : devices_) {
      result.devices.push_back({Seconds(state.first_start), Seconds(state.ended),
                                Seconds(state.busy), Bytes(state.peak), state.peak_in_flight});
      first = std::min(first, state.first_start);
      last = std::max(last, state.ended);
      const Seconds span = result.devices.back().span();
      if (span > result.cost) {
        result.cost = span;
        result.work = Seconds(state.busy);
      }
    }
    result.makespan = Seconds(last - first);
    return result;
  }

 private:
  struct State {
    double clock = 0;  // when it can go on
    double ended = 0;  // its last pass
    double first_start = 0;
    double busy = 0;
    double spare = 0;  // of its most seconds, beside its passes
    double held = 0;
    double peak = 0;
    int in_flight = 0;
    int peak_in_flight = 0;
    bool started = false;
  };

  // Work of all passes of a device, without those of a vocabulary; nothing where passes overlap or
  // units differ.
  [[nodiscard]] Seconds least_work(int device) const {
    const Placement& place = program_.placement();
    Seconds work;
    if (!program_.pairs().empty() || !problem_.kinds.empty()) return work;
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      const int vs = place.virtual_stage(device, chunk);
      const int all = program_.shape().units();
      const double units = place.end_unit(vs, all) - place.first_unit(vs, all);
      const StageCost& cost = problem_.stage(vs);
      work += units * (cost.forward + cost.backward_input + cost.backward_weight);
    }
    return work;
  }

  [[nodiscard]] bool ends_unit(const Pass& pass) const {
    const PassKind kind =
        pass.kind == PassKind::kFB ? program_.pair(pass).backward.kind : pass.kind;
    return kind == PassKind::kW || kind == PassKind::kBW;
  }

  // With copies the bytes of a device do not come and go in the order of its passes.
  struct Change {
    double seconds = 0;
    double bytes = 0;
  };

  // At equal times releases come first.
  static double peak_of(std::vector<Change>& changes) {
    std::ranges::sort(changes, [](const Change& a, const Change& b) {
      return a.seconds < b.seconds || (a.seconds == b.seconds && a.bytes < b.bytes);
    });
    double held = 0;
    double peak = 0;
    for (const Change& change : changes) peak = std::max(peak, held += change.bytes);
    return peak;
  }

  void account(State& state, int device, const Pass& pass, double start) {
    const PassBytes bytes = pass_bytes(problem_, program_, device, pass);
    if (!changes_.empty()) {
      auto& changes = changes_[device];
      changes.push_back({start, bytes.acquired.value()});
      changes.push_back({state.ended, -bytes.released.value()});
    }
    const bool acquires = pass.kind == PassKind::kF || pass.kind == PassKind::kFB;
    state.held += bytes.acquired.value();
    state.in_flight += acquires ? 1 : 0;
    state.peak = std::max(state.peak, state.held);
    state.peak_in_flight = std::max(state.peak_in_flight, state.in_flight);
    state.held -= bytes.released.value();
    // B acquires at its end where W needs more than F kept.
    state.peak = std::max(state.peak, state.held);
    state.in_flight -= ends_unit(pass) ? 1 : 0;
  }

  const Program& program_;
  const Problem& problem_;
  std::vector<State> devices_;
  bool hopeless_ = false;
  std::vector<std::array<double, 2>> links_;  // end of the last copy out, and back
  std::vector<std::vector<Change>> changes_;  // by device
};

Seconds vocabulary_seconds(const Problem& problem, int device, const Pass& pass) {
  const VocabularyCost& cost = problem.vocabulary_costs[device];
  const double size = problem.size(pass.microbatch);
  switch (pass.kind) {
    case PassKind::kS:
      return size * cost.output_forward;
    case PassKind::kT:
      return size * cost.output_backward;
    case PassKind::kIF:
      return size * cost.input_forward;
    default:
      return size * cost.input_backward;
  }
}

Seconds backward_of(const StageCost& stage) { return stage.backward_input + stage.backward_weight; }

// The time of the two passes of one stage as a block, over their sum.
double share_of(const StageCost& stage) {
  const Seconds apart = stage.forward + backward_of(stage);
  return apart > Seconds(0) ? *stage.overlapped / apart : 1;
}

}  // namespace

std::optional<Seconds> block_seconds(const StageCost& forward, const StageCost& backward) {
  if (!forward.overlapped || !backward.overlapped) return std::nullopt;
  const Seconds f = forward.forward;
  const Seconds bw = backward_of(backward);
  // Equal stages give the number itself, free of rounding.
  if (forward.overlapped == backward.overlapped && f == backward.forward &&
      bw == backward_of(forward)) {
    return forward.overlapped;
  }
  return std::max({share_of(forward) * f + share_of(backward) * bw,
                   std::min(f, *forward.overlapped), std::min(bw, *backward.overlapped)});
}

std::optional<Seconds> block_seconds(const Problem& problem, int vs_forward, int vs_backward) {
  if (problem.blocks.empty()) {
    return block_seconds(problem.stage(vs_forward), problem.stage(vs_backward));
  }
  const Placement& place = problem.placement;
  return problem
      .blocks[static_cast<size_t>(vs_forward) * place.chunks() + place.chunk(vs_backward)];
}

namespace {

// A block of units that differ from the mean takes the same share of their F and BW as the mean's.
std::optional<Seconds> whole_pair_seconds(const Problem& problem, int vs_forward, int vs_backward,
                                          const StageCost& forward, const StageCost& backward) {
  if (problem.blocks.empty()) return block_seconds(forward, backward);
  const auto block = block_seconds(problem, vs_forward, vs_backward);
  if (problem.kinds.empty() || !block) return block;
  const Seconds apart = problem.stage(vs_forward).forward + backward_of(problem.stage(vs_backward));
  return *block * ((forward.forward + backward_of(backward)) / apart);
}

}  // namespace

std::optional<Seconds> pair_seconds(const Problem& problem, int vs_forward, int vs_backward,
                                    const OverlappedPair& pair) {
  const StageCost& forward = problem.stage(vs_forward, pair.forward.microbatch);
  const StageCost& backward = problem.stage(vs_backward, pair.backward.microbatch);
  const auto whole = whole_pair_seconds(problem, vs_forward, vs_backward, forward, backward);
  if (!whole || pair.backward.kind == PassKind::kBW) return whole;
  const Seconds f = forward.forward;
  const Seconds part =
      pair.backward.kind == PassKind::kB ? backward.backward_input : backward.backward_weight;
  const Seconds apart = f + backward_of(backward);
  const double share = apart > Seconds(0) ? *whole / apart : 1;
  return std::max({share * (f + part), std::min(f, *whole), std::min(part, *whole)});
}

Seconds pass_seconds(const Problem& problem, const Program& program, int device, const Pass& pass) {
  if (pass.kind == PassKind::kFB) {
    const OverlappedPair& pair = program.pair(pass);
    const Placement& place = program.placement();
    const auto seconds = pair_seconds(problem, place.virtual_stage(device, pair.forward.chunk),
                                      place.virtual_stage(device, pair.backward.chunk), pair);
    if (!seconds) throw LogicError("an overlapped block has no cost");
    return *seconds;
  }
  if (is_vocabulary(pass.kind)) return vocabulary_seconds(problem, device, pass);
  const StageCost& cost =
      problem.stage(program.placement().virtual_stage(device, pass.chunk), pass.microbatch);
  switch (pass.kind) {
    case PassKind::kF:
      return cost.forward;
    case PassKind::kB:
      return cost.backward_input;
    case PassKind::kW:
      return cost.backward_weight;
    case PassKind::kR:
      return cost.recompute.value_or(cost.forward);
    default:
      return cost.backward_input + cost.backward_weight;
  }
}

Seconds copy_seconds(const Problem& problem, const Program& program, const Copy& copy, bool out) {
  const StageCost& cost = problem.stage(
      program.placement().virtual_stage(static_cast<int>(copy.device), copy.chunk), copy.unit);
  return (copy.alone ? problem.copy_alone_factor : 1) * (out ? cost.copy_out : cost.copy_in);
}

Bytes copied_bytes(const Problem& problem, const Program& program, const Copy& copy) {
  const Pass made{PassKind::kF, copy.chunk, copy.unit};
  return problem.offload_ratio *
         pass_bytes(problem, program, static_cast<int>(copy.device), made).acquired;
}

PassBytes pass_bytes(const Problem& problem, const Program& program, int device, const Pass& pass) {
  if (pass.kind == PassKind::kFB) {
    const OverlappedPair& pair = program.pair(pass);
    return {pass_bytes(problem, program, device, pair.forward).acquired,
            pass_bytes(problem, program, device, pair.backward).released};
  }
  if (is_vocabulary(pass.kind)) {
    const Bytes bytes =
        problem.size(pass.microbatch) * problem.vocabulary_costs[device].output_activation;
    return {pass.kind == PassKind::kS ? bytes : Bytes(0),
            pass.kind == PassKind::kT ? bytes : Bytes(0)};
  }
  const int vs = program.placement().virtual_stage(device, pass.chunk);
  const StageCost& cost = problem.stage(vs, pass.microbatch);
  switch (pass.kind) {
    case PassKind::kF:
      return {program.recomputes(vs) ? cost.checkpoint : cost.activation, Bytes(0)};
    case PassKind::kR:
      return {cost.activation - cost.checkpoint, Bytes(0)};
    case PassKind::kB:
      return {Bytes(0), cost.activation - cost.weight_stash};
    case PassKind::kW:
      return {Bytes(0), cost.weight_stash};
    default:
      return {Bytes(0), cost.activation};
  }
}

namespace {

TimeVisitor visited(const Program& program, const Problem& problem, Seconds most) {
  if (is_sharded(program.vocabulary()) &&
      std::cmp_not_equal(problem.vocabulary_costs.size(), problem.shape.devices)) {
    throw LogicError("vocabulary passes have no cost");
  }
  TimeVisitor visitor(program, problem, most);
  walk(program, visitor);
  return visitor;
}

}  // namespace

Evaluation evaluate(const Program& program, const Problem& problem) {
  constexpr Seconds kAny(std::numeric_limits<double>::infinity());
  return visited(program, problem, kAny).finish();
}

std::optional<Evaluation> evaluate_below(const Program& program, const Problem& problem,
                                         Seconds most) {
  TimeVisitor visitor = visited(program, problem, most);
  if (visitor.hopeless()) return std::nullopt;
  Evaluation result = visitor.finish();
  if (time_of(result, problem.objective) >= most) return std::nullopt;
  return result;
}

}  // namespace pipesim
