#include "sim/pipeline/offload.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/walk.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-12;  // relative, for sums that are equal but for rounding

// Where a pass stands in the program.
struct Place {
  int device = 0;
  std::uint32_t position = 0;
};

// When passes start and end without any copies, and the order in which they can be visited.
class TimesVisitor {
 public:
  using Value = double;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  TimesVisitor(const Program& program, const Problem& problem)
      : program_(program),
        problem_(problem),
        clock_(static_cast<size_t>(program.shape().devices), 0),
        start(clock_.size()),
        end(clock_.size()) {
    order.reserve(program.size());
  }

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    const auto d = static_cast<size_t>(device);
    order.push_back({device, static_cast<std::uint32_t>(start[d].size())});
    start[d].push_back(std::max({clock_[d], input, gradient}));
    clock_[d] = start[d].back() + pass_seconds(problem_, program_, device, pass).value();
    end[d].push_back(clock_[d]);
    return clock_[d];
  }
  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t /*unit*/) {
    if (to < 0) return result;
    return result + problem_.stage(kind == PassKind::kF ? from : to).transfer.value();
  }
  Value join(Barrier barrier, std::uint32_t /*unit*/, std::span<const Value> results) {
    return std::ranges::max(results) + problem_.barriers[static_cast<size_t>(barrier)].value();
  }
  [[nodiscard]] Value last(int device) const { return clock_[static_cast<size_t>(device)]; }
  void hold(int device, Value until) {
    double& clock = clock_[static_cast<size_t>(device)];
    clock = std::max(clock, until);
  }

 private:
  const Program& program_;
  const Problem& problem_;
  std::vector<double> clock_;

 public:
  std::vector<std::vector<double>> start, end;  // by device and position
  std::vector<Place> order;
};

// An activation that could go to the host.
struct Candidate {
  Copy copy;
  double made = 0;    // end of its F
  double needed = 0;  // by when it must be back
  double out = 0;     // seconds
  double back = 0;

  [[nodiscard]] double lifespan() const { return needed - made; }
};

// The copies over one link.
class Link {
 public:
  explicit Link(std::vector<Candidate> all, double alone) : all_(std::move(all)), alone_(alone) {
    by_made_.resize(all_.size());
    std::iota(by_made_.begin(), by_made_.end(), size_t{0});
    by_needed_ = by_made_;
    const auto earlier = [this](auto time) {
      return [this, time](size_t a, size_t b) {
        const Candidate& x = all_[a];
        const Candidate& y = all_[b];
        return std::tuple(x.*time, x.copy.device, x.copy.unit) <
               std::tuple(y.*time, y.copy.device, y.copy.unit);
      };
    };
    std::ranges::stable_sort(by_made_, earlier(&Candidate::made));
    std::ranges::stable_sort(by_needed_, earlier(&Candidate::needed));
    kept_.assign(all_.size(), true);
    out_end_.assign(all_.size(), 0);
    back_start_.assign(all_.size(), 0);
  }

  void plan() {
    drop_what_cannot_come_back();
    place_back();
    drop_what_cannot_go_out();
    // What was dropped leaves the others more room: backs later, outs earlier. Of what still spends
    // no time on the host, which saves nothing, every second one is dropped, until there is none.
    for (bool changed = true; changed;) {
      place_back();
      place_out();
      changed = false;
      bool drop = true;
      for (const size_t i : by_made_) {
        if (!kept_[i] || late(out_end_[i]) < back_start_[i]) continue;
        if (drop) kept_[i] = false;
        drop = !drop;
        changed = true;
      }
    }
  }

  // The copies in the order of the link, and for those out when they end.
  [[nodiscard]] std::vector<std::pair<Copy, double>> out() const {
    std::vector<std::pair<Copy, double>> copies;
    for (const size_t i : by_made_) {
      if (!kept_[i]) continue;
      copies.emplace_back(all_[i].copy, out_end_[i]);
      copies.back().first.alone = is_alone(i);
    }
    return copies;
  }
  // Likewise back, and when they start.
  [[nodiscard]] std::vector<std::pair<Copy, double>> back() const {
    std::vector<std::pair<Copy, double>> copies;
    for (const size_t i : by_needed_) {
      if (kept_[i]) copies.emplace_back(all_[i].copy, back_start_[i]);
    }
    return copies;
  }

 private:
  static double late(double seconds) { return seconds * (1 + kSlack); }

  // Of the copies since the link was last idle, the one whose activation lives shortest.
  using Shortest = std::priority_queue<std::pair<double, size_t>,
                                       std::vector<std::pair<double, size_t>>, std::greater<>>;

  // Against the time from the last backward on: a copy back that would have to start before its
  // activation can be out makes the shortest lifespan of the busy period stay (Moore's rule, with
  // lifespans instead of durations).
  void drop_what_cannot_come_back() {
    Shortest busy;
    double clock = kNever;
    for (size_t k = by_needed_.size(); k-- > 0;) {
      const size_t i = by_needed_[k];
      const Candidate& each = all_[i];
      if (each.needed <= clock) {
        busy = {};
        clock = each.needed;
      }
      clock -= each.back;
      busy.emplace(each.lifespan(), i);
      if (each.made + each.out <= late(clock)) continue;
      const size_t least = busy.top().second;
      busy.pop();
      kept_[least] = false;
      clock += all_[least].back;
    }
  }

  void drop_what_cannot_go_out() {
    Shortest busy;
    double clock = 0;
    for (const size_t i : by_made_) {
      if (!kept_[i]) continue;
      if (all_[i].made >= clock) {
        busy = {};
        clock = all_[i].made;
      }
      out_end_[i] = out_seconds(i, clock);
      clock += out_end_[i];
      busy.emplace(all_[i].lifespan(), i);
      if (clock <= late(back_start_[i])) continue;
      const size_t least = busy.top().second;
      busy.pop();
      kept_[least] = false;
      clock -= out_end_[least];
    }
  }

  // Backs as late as they can be.
  void place_back() {
    double clock = kNever;
    first_back_ = kNever;
    for (size_t k = by_needed_.size(); k-- > 0;) {
      const size_t i = by_needed_[k];
      if (!kept_[i]) continue;
      clock = std::min(clock, all_[i].needed) - all_[i].back;
      back_start_[i] = first_back_ = clock;
    }
  }
  // Outs as early as they can be.
  void place_out() {
    double clock = 0;
    for (const size_t i : by_made_) {
      if (!kept_[i]) continue;
      const double start = std::max(clock, all_[i].made);
      out_end_[i] = clock = start + out_seconds(i, start);
    }
  }

  // Before the first copy back a copy out has the link for itself.
  [[nodiscard]] double out_seconds(size_t i, double start) const {
    const double seconds = alone_ * all_[i].out;
    return start + seconds <= first_back_ ? seconds : all_[i].out;
  }
  [[nodiscard]] bool is_alone(size_t i) const { return out_end_[i] <= first_back_; }

  std::vector<Candidate> all_;
  double alone_;
  std::vector<size_t> by_made_, by_needed_;
  std::vector<bool> kept_;
  std::vector<double> out_end_, back_start_;
  double first_back_ = kNever;
};

class Offload {
 public:
  Offload(const Program& program, const Problem& problem, const OffloadScope& scope)
      : program_(program),
        problem_(problem),
        scope_(scope),
        place_(program.placement()),
        units_(static_cast<size_t>(program.shape().units())),
        times_(program, problem) {
    walk(program, times_);
    find_passes();
    delay_warm_up();
  }

  Program run() {
    CopyPlan plan;
    plan.devices_per_link = std::clamp(problem_.devices_per_host_link, 1, place_.devices());
    const auto per_link = static_cast<size_t>(plan.devices_per_link);
    const auto devices = static_cast<size_t>(place_.devices());
    plan.links.resize((devices + per_link - 1) / per_link);
    plan.gates.resize(devices);
    std::vector<std::vector<Candidate>> candidates(plan.links.size());
    for (int device = 0; device < place_.devices(); ++device) {
      add_candidates(device, candidates[plan.link_of(static_cast<std::uint32_t>(device))]);
    }
    for (size_t number = 0; number < plan.links.size(); ++number) {
      Link link(std::move(candidates[number]), problem_.copy_alone_factor);
      link.plan();
      fill(link, plan, plan.links[number]);
    }
    return program_.with_copies(std::move(plan));
  }

 private:
  struct Use {
    Place forward, backward;  // of an activation: its F, and the first pass that needs it again
  };

  [[nodiscard]] size_t slot(int device, const Pass& pass) const {
    return static_cast<size_t>(place_.virtual_stage(device, pass.chunk)) * units_ + pass.microbatch;
  }
  [[nodiscard]] const Use& use_of(const Copy& copy) const {
    return uses_[slot(static_cast<int>(copy.device),
                      make_pass(PassKind::kF, static_cast<int>(copy.unit), copy.chunk))];
  }
  [[nodiscard]] double& start(const Place& at) {
    return times_.start[static_cast<size_t>(at.device)][at.position];
  }
  [[nodiscard]] double& end(const Place& at) {
    return times_.end[static_cast<size_t>(at.device)][at.position];
  }

  void find_passes() {
    uses_.resize(static_cast<size_t>(place_.virtual_stages()) * units_);
    for (int device = 0; device < place_.devices(); ++device) {
      const auto passes = program_.passes(device);
      for (std::uint32_t i = 0; i < passes.size(); ++i) {
        const bool block = passes[i].kind == PassKind::kFB;
        note(device, i, block ? program_.pair(passes[i]).forward : passes[i]);
        if (block) note(device, i, program_.pair(passes[i]).backward);
      }
    }
  }
  void note(int device, std::uint32_t position, const Pass& pass) {
    if (is_vocabulary(pass.kind) || pass.kind == PassKind::kW) return;
    Use& use = uses_[slot(device, pass)];
    const bool recomputes =
        program_.recomputes(place_.virtual_stage(device, static_cast<int>(pass.chunk)));
    if (pass.kind == PassKind::kF) use.forward = {device, position};
    if (pass.kind == PassKind::kR || (pass.kind != PassKind::kF && !recomputes)) {
      use.backward = {device, position};
    }
  }

  // Forwards before the first backward of their device, later ones first.
  void delay_warm_up() {
    std::vector<std::uint32_t> first_backward(static_cast<size_t>(place_.devices()));
    for (int device = 0; device < place_.devices(); ++device) {
      const auto passes = program_.passes(device);
      const auto other =
          std::ranges::find_if(passes, [](const Pass& pass) { return pass.kind != PassKind::kF; });
      first_backward[static_cast<size_t>(device)] =
          static_cast<std::uint32_t>(other - passes.begin());
    }
    for (size_t k = times_.order.size(); k-- > 0;) {
      const Place& at = times_.order[k];
      if (at.position >= first_backward[static_cast<size_t>(at.device)]) continue;
      const Pass& pass = program_.passes(at.device)[at.position];
      const double seconds = end(at) - start(at);
      double latest = start({at.device, at.position + 1}) - seconds;
      const int vs = place_.virtual_stage(at.device, pass.chunk);
      if (const int down = place_.downstream(vs); down >= 0) {
        const Use& next = uses_[static_cast<size_t>(down) * units_ + pass.microbatch];
        latest =
            std::min(latest, start(next.forward) - seconds - problem_.stage(vs).transfer.value());
      }
      if (latest <= start(at)) continue;
      start(at) = latest;
      end(at) = latest + seconds;
    }
  }

  // Chunks of a device whose activations go: those asked for, or that live longest on average.
  [[nodiscard]] std::vector<bool> offloaded_chunks(int device) {
    const auto chunks = static_cast<size_t>(place_.chunks());
    std::vector<bool> chosen(chunks, false);
    for (const int chunk : scope_.which) chosen[static_cast<size_t>(chunk)] = true;
    if (!scope_.which.empty()) return chosen;
    std::vector<std::pair<double, size_t>> lives;
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      const int vs = place_.virtual_stage(device, static_cast<int>(chunk));
      double sum = 0;
      for (size_t unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        const Use& use = uses_[static_cast<size_t>(vs) * units_ + unit];
        sum += start(use.backward) - end(use.forward);
      }
      lives.emplace_back(-sum, chunk);
    }
    std::ranges::sort(lives);
    for (size_t i = 0; i < std::min(chunks, static_cast<size_t>(scope_.chunks)); ++i) {
      chosen[lives[i].second] = true;
    }
    return chosen;
  }
  [[nodiscard]] size_t first_unit(int vs) const {
    return static_cast<size_t>(place_.first_unit(vs, program_.shape().units()));
  }
  [[nodiscard]] size_t end_unit(int vs) const {
    return static_cast<size_t>(place_.end_unit(vs, program_.shape().units()));
  }

  [[nodiscard]] bool may_leave(size_t unit) const {
    const auto splits = static_cast<size_t>(program_.shape().splits);
    return scope_.microbatches.empty() || scope_.microbatches[unit / splits];
  }

  void add_candidates(int device, std::vector<Candidate>& candidates) {
    const std::vector<bool> chosen = offloaded_chunks(device);
    for (size_t chunk = 0; chunk < chosen.size(); ++chunk) {
      if (!chosen[chunk]) continue;
      const int vs = place_.virtual_stage(device, static_cast<int>(chunk));
      const StageCost& cost = problem_.stage(vs);
      for (size_t unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        if (!may_leave(unit)) continue;
        const Use& use = uses_[static_cast<size_t>(vs) * units_ + unit];
        Candidate each;
        each.copy.device = static_cast<std::uint32_t>(device);
        each.copy.unit = static_cast<std::uint32_t>(unit);
        each.copy.chunk = static_cast<std::uint16_t>(chunk);
        each.out = cost.copy_out.value();
        each.back = cost.copy_in.value();
        each.made = end(use.forward);
        each.needed = start(use.backward) - problem_.prefetch * cost.backward_input.value();
        const double copies = each.out + each.back;
        if (copies > 0 && copies <= each.lifespan()) candidates.push_back(each);
      }
    }
  }

  void fill(const Link& link, CopyPlan& plan, LinkCopies& to) {
    for (const auto& [copy, ended] : link.out()) {
      add_gate(copy, ended, static_cast<std::uint32_t>(to.out.size()), plan);
      to.out.push_back(copy);
    }
    for (const auto& [copy, starts] : link.back()) {
      // The last pass that has ended by then, before the one that needs it.
      const auto& ends = times_.end[copy.device];
      const auto ended = std::ranges::upper_bound(ends, starts * (1 + kSlack)) - ends.begin();
      const auto after = std::min<std::ptrdiff_t>(ended, use_of(copy).backward.position);
      to.in.push_back(copy);
      to.in.back().after = after == 0 ? Copy::kAnyTime : static_cast<std::uint32_t>(after - 1);
    }
  }

  // The first forward that starts no earlier than the copy out ends waits for it. Of several copies
  // the last one stands for all.
  void add_gate(const Copy& copy, double ended, std::uint32_t out, CopyPlan& plan) {
    const std::uint32_t device = copy.device;
    const auto& starts = times_.start[device];
    const auto passes = program_.passes(static_cast<int>(device));
    auto at = static_cast<size_t>(std::ranges::lower_bound(starts, ended * (1 - kSlack)) -
                                  starts.begin());
    at = std::max<size_t>(at, use_of(copy).forward.position + 1);
    while (at < passes.size() && passes[at].kind != PassKind::kF &&
           passes[at].kind != PassKind::kFB) {
      ++at;
    }
    if (at == passes.size()) return;
    auto& gates = plan.gates[device];
    const auto position = static_cast<std::uint32_t>(at);
    if (!gates.empty() && gates.back().position == position) {
      gates.back().out = out;
    } else {
      gates.push_back({position, out});
    }
  }

  const Program& program_;
  const Problem& problem_;
  const OffloadScope& scope_;
  const Placement& place_;
  size_t units_;
  TimesVisitor times_;
  std::vector<Use> uses_;  // by virtual stage and unit
};

}  // namespace

Program with_offload(const Program& program, const Problem& problem, const OffloadScope& scope) {
  return Offload(program, problem, scope).run();
}

}  // namespace pipesim
