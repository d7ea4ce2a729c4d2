#include "sim/execution/with_offload.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/execution/link_plan.h"
#include "sim/execution/walk.h"

namespace pipesim {
namespace {

constexpr double kSlack = 1e-12;  // relative, for sums that are equal but for rounding

// Planning stays near-linear: the rules that are tried of large programs are fewer.
constexpr size_t kMostPlanned = 1 << 15;  // rules times activations
constexpr size_t kFewestRules = 8;
constexpr size_t kMostChecked = 1 << 8;  // activations of a program whose plans are executed
constexpr double kNearly = 1.1;          // of a peak: what is planned may be executed below it

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
        clock_(program.shape().devices, 0),
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
    return std::ranges::max(results) + problem_.barriers[barrier].value();
  }
  [[nodiscard]] Value last(int device) const { return clock_[device]; }
  void hold(int device, Value until) {
    double& clock = clock_[device];
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

class Offload {
 public:
  Offload(const Program& program, const Problem& problem, const OffloadScope& scope)
      : program_(program),
        problem_(problem),
        scope_(scope),
        place_(program.placement()),
        units_(program.shape().units()),
        times_(program, problem) {
    walk(program, times_);
    find_passes();
    delay_warm_up();
  }

  Program run() {
    const auto passes = device_passes();
    make_links(passes);
    const int chunks =
        scope_.which.empty() ? std::min(scope_.chunks, place_.chunks()) : place_.chunks();
    // Microbatches that are named leave as far as the links can carry them.
    if (activations_ == 1 || std::ranges::count(scope_.microbatches, false) > 0) {
      for (LinkPlan& link : links_) link.plan({.chunks = chunks});
      return planned();
    }
    std::vector<LinkRule> rules = link_rules(chunks);
    rules.resize(std::min(rules.size(), std::max(kFewestRules, kMostPlanned / activations_)));
    std::vector<double> peaks(rules.size(), 0);
    std::vector<LinkRule> found;
    for (LinkPlan& link : links_) {
      std::vector<double> of_link;
      found.push_back(link.plan_least(rules, of_link));
      for (size_t i = 0; i < rules.size(); ++i) peaks[i] = std::max(peaks[i], of_link[i]);
    }
    Program best = planned();
    return activations_ > kMostChecked ? best : checked(best, rules, peaks, found);
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
  [[nodiscard]] double& start(const Place& at) { return times_.start[at.device][at.position]; }
  [[nodiscard]] double& end(const Place& at) { return times_.end[at.device][at.position]; }

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

  // What is executed may differ a little from what is planned, since forwards move only where
  // copies hold them: no rule by itself may keep less.
  [[nodiscard]] Program checked(Program best, std::span<const LinkRule> rules,
                                std::span<const double> peaks, std::span<const LinkRule> found) {
    double least = evaluate(best, problem_).peak_activation().value();
    for (size_t i = 0; i < rules.size(); ++i) {
      const auto same = [&](const LinkRule& rule) { return rule == rules[i]; };
      if (peaks[i] > kNearly * least || std::ranges::all_of(found, same)) continue;
      for (LinkPlan& link : links_) link.plan(rules[i]);
      Program other = planned();
      const double peak = evaluate(other, problem_).peak_activation().value();
      if (peak >= least) continue;
      least = peak;
      best = std::move(other);
    }
    return best;
  }

  void make_links(std::span<const DevicePasses> passes) {
    devices_per_link_ = std::clamp(problem_.devices_per_host_link, 1, place_.devices());
    const auto per_link = static_cast<size_t>(devices_per_link_);
    for (size_t first = 0; first < passes.size(); first += per_link) {
      const auto of_link = passes.subspan(first, std::min(per_link, passes.size() - first));
      std::vector<Candidate> candidates;
      for (size_t d = first; d < first + of_link.size(); ++d) {
        add_candidates(static_cast<int>(d), candidates);
      }
      activations_ += candidates.size();
      links_.emplace_back(std::move(candidates), of_link, static_cast<int>(first),
                          problem_.copy_alone_factor, program_.shape().splits);
    }
  }

  // The program with the copies that the links now plan.
  [[nodiscard]] Program planned() {
    CopyPlan plan;
    plan.devices_per_link = devices_per_link_;
    plan.links.resize(links_.size());
    plan.gates.resize(place_.devices());
    for (size_t i = 0; i < links_.size(); ++i) fill(links_[i], plan, plan.links[i]);
    return program_.with_copies(std::move(plan));
  }

  // In planned time.
  [[nodiscard]] std::vector<DevicePasses> device_passes() const {
    std::vector<DevicePasses> devices(place_.devices());
    for (int device = 0; device < place_.devices(); ++device) {
      const auto d = static_cast<size_t>(device);
      const auto passes = program_.passes(device);
      auto& held = devices[d].held;
      held.reserve(passes.size());
      for (size_t i = 0; i < passes.size(); ++i) {
        const auto [acquired, released] = pass_bytes(problem_, program_, device, passes[i]);
        if (acquired != Bytes(0)) held.push_back({times_.start[d][i], acquired.value()});
        if (released != Bytes(0)) held.push_back({times_.end[d][i], -released.value()});
      }
      devices[d].ends = times_.end[d];
    }
    return devices;
  }

  // Forwards before the first backward of their device, later ones first.
  void delay_warm_up() {
    std::vector<std::uint32_t> first_backward(place_.devices());
    for (int device = 0; device < place_.devices(); ++device) {
      const auto passes = program_.passes(device);
      const auto other =
          std::ranges::find_if(passes, [](const Pass& pass) { return pass.kind != PassKind::kF; });
      first_backward[device] = static_cast<std::uint32_t>(other - passes.begin());
    }
    for (size_t k = times_.order.size(); k-- > 0;) {
      const Place& at = times_.order[k];
      if (at.position >= first_backward[at.device]) continue;
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

  // By chunk of a device, how many live longer on average; -1 for those that are not to leave.
  [[nodiscard]] std::vector<int> ranks(int device) {
    const auto chunks = static_cast<size_t>(place_.chunks());
    std::vector<std::pair<double, size_t>> lives;
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      if (!scope_.which.empty() && !std::ranges::count(scope_.which, static_cast<int>(chunk))) {
        continue;
      }
      const int vs = place_.virtual_stage(device, static_cast<int>(chunk));
      double sum = 0;
      for (size_t unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        const Use& use = uses_[static_cast<size_t>(vs) * units_ + unit];
        sum += start(use.backward) - end(use.forward);
      }
      lives.emplace_back(-sum, chunk);
    }
    std::ranges::sort(lives);
    std::vector<int> ranks(chunks, -1);
    const auto most = static_cast<size_t>(scope_.which.empty() ? scope_.chunks : place_.chunks());
    for (size_t i = 0; i < std::min(lives.size(), most); ++i) {
      ranks[lives[i].second] = static_cast<int>(i);
    }
    return ranks;
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
    const std::vector<int> ranks = this->ranks(device);
    for (size_t chunk = 0; chunk < ranks.size(); ++chunk) {
      if (ranks[chunk] < 0) continue;
      const int vs = place_.virtual_stage(device, static_cast<int>(chunk));
      const StageCost& cost = problem_.stage(vs);
      const double bytes = pass_bytes(problem_, program_, device,
                                      make_pass(PassKind::kF, 0, static_cast<int>(chunk)))
                               .acquired.value();
      for (size_t unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        if (!may_leave(unit)) continue;
        const Use& use = uses_[static_cast<size_t>(vs) * units_ + unit];
        Candidate each;
        each.copy.device = static_cast<std::uint32_t>(device);
        each.copy.unit = static_cast<std::uint32_t>(unit);
        each.copy.chunk = static_cast<std::uint16_t>(chunk);
        each.out = cost.copy_out.value();
        each.back = cost.copy_in.value();
        each.bytes = bytes;
        each.rank = ranks[chunk];
        each.made = end(use.forward);
        each.needed = start(use.backward) - problem_.prefetch * cost.backward_input.value();
        const double copies = each.out + each.back;
        if (copies > 0 && copies <= each.lifespan()) candidates.push_back(each);
      }
    }
  }

  void fill(const LinkPlan& link, CopyPlan& plan, LinkCopies& to) {
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
  int devices_per_link_ = 1;
  std::vector<LinkPlan> links_;
  size_t activations_ = 1;  // that could go, and one
};

}  // namespace

Program with_offload(const Program& program, const Problem& problem, const OffloadScope& scope) {
  return Offload(program, problem, scope).run();
}

}  // namespace pipesim
