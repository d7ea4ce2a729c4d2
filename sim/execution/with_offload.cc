#include "sim/execution/with_offload.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/execution/link_plan.h"
#include "sim/execution/pass_times.h"

namespace pipesim {
namespace {

// Planning stays near-linear: the rules that are tried of large programs are fewer.
constexpr size_t kMostPlanned = 1 << 15;  // rules times activations
constexpr size_t kFewestRules = 9;
constexpr size_t kMostChecked = 1 << 8;  // activations of a program whose plans are executed
constexpr double kNearly = 1.1;          // of a peak: what is planned may be executed below it

class Offload {
 public:
  Offload(const Program& program, const Problem& problem, const OffloadScope& scope)
      : program_(program),
        problem_(problem),
        scope_(scope),
        place_(program.placement()),
        times_(pass_times(program, problem)),
        uses_(place_.virtual_stages(), program.shape().units()) {
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
    const std::vector<LinkRule> rules =
        link_rules(chunks, devices_per_link_, std::max(kFewestRules, kMostPlanned / activations_));
    const bool check = activations_ <= kMostChecked;
    std::vector<double> peaks(rules.size(), 0);
    std::vector<LinkRule> found;
    for (LinkPlan& link : links_) {
      std::vector<double> of_link;
      found.push_back(link.plan_least(rules, check ? &of_link : nullptr));
      for (size_t i = 0; i < of_link.size(); ++i) peaks[i] = std::max(peaks[i], of_link[i]);
    }
    Program best = planned();
    return check ? checked(best, rules, peaks, found) : best;
  }

 private:
  using Place = PassTimes::Place;
  struct Use {
    Place forward, backward;  // of an activation: its F, and the first pass that needs it again
  };

  [[nodiscard]] const Use& use_of(const Copy& copy) const {
    return uses_(place_.virtual_stage(static_cast<int>(copy.device), copy.chunk), copy.unit);
  }
  [[nodiscard]] double& start(const Place& at) { return times_.start[at.device][at.position]; }
  [[nodiscard]] double& end(const Place& at) { return times_.end[at.device][at.position]; }

  void find_passes() {
    for (int device = 0; device < place_.devices(); ++device) {
      const auto passes = program_.passes(device);
      for (std::uint32_t i = 0; i < passes.size(); ++i) {
        program_.visit_parts(passes[i], [&](const Pass& part) { note(device, i, part); });
      }
    }
  }
  void note(int device, std::uint32_t position, const Pass& pass) {
    if (is_vocabulary(pass.kind) || pass.kind == PassKind::kW) return;
    const int vs = place_.virtual_stage(device, pass.chunk);
    Use& use = uses_(vs, pass.microbatch);
    const bool recomputes = program_.recomputes(vs);
    if (pass.kind == PassKind::kF) use.forward = {device, position};
    if (pass.kind == PassKind::kR || (pass.kind != PassKind::kF && !recomputes)) {
      use.backward = {device, position};
    }
  }

  // Keeps the program whose execution holds least. Execution may differ a little from the plan,
  // since forwards move only where copies hold them.
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
    const size_t per_link = devices_per_link_;
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
      const auto passes = program_.passes(device);
      const auto& starts = times_.start[device];
      const auto& ends = times_.end[device];
      auto& held = devices[device].held;
      held.reserve(passes.size());
      for (size_t i = 0; i < passes.size(); ++i) {
        const auto [acquired, released] = pass_bytes(problem_, program_, device, passes[i]);
        if (acquired != Bytes(0)) held.push_back({starts[i], acquired.value()});
        if (released != Bytes(0)) held.push_back({ends[i], -released.value()});
      }
      devices[device].ends = ends;
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
        const Use& next = uses_(down, pass.microbatch);
        latest = std::min(latest, start(next.forward) - seconds -
                                      problem_.stage(vs, pass.microbatch).transfer.value());
      }
      if (latest <= start(at)) continue;
      start(at) = latest;
      end(at) = latest + seconds;
    }
  }

  // By chunk of a device, how many live longer on average; -1 for those that are not to leave.
  [[nodiscard]] std::vector<int> ranks(int device) {
    std::vector<std::pair<double, int>> lives;
    for (int chunk = 0; chunk < place_.chunks(device); ++chunk) {
      if (!scope_.which.empty() && !std::ranges::count(scope_.which, chunk)) continue;
      const int vs = place_.virtual_stage(device, chunk);
      double sum = 0;
      for (int unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        const Use& use = uses_(vs, unit);
        sum += start(use.backward) - end(use.forward);
      }
      lives.emplace_back(-sum, chunk);
    }
    std::ranges::sort(lives);
    std::vector<int> ranks(place_.chunks(), -1);
    const int most = scope_.which.empty() ? scope_.chunks : place_.chunks();
    for (int i = 0; std::cmp_less(i, lives.size()) && i < most; ++i) ranks[lives[i].second] = i;
    return ranks;
  }
  [[nodiscard]] int first_unit(int vs) const {
    return place_.first_unit(vs, program_.shape().units());
  }
  [[nodiscard]] int end_unit(int vs) const { return place_.end_unit(vs, program_.shape().units()); }

  [[nodiscard]] bool may_leave(int unit) const {
    return scope_.microbatches.empty() || scope_.microbatches[unit / program_.shape().splits];
  }

  void add_candidates(int device, std::vector<Candidate>& candidates) {
    const std::vector<int> ranks = this->ranks(device);
    for (int chunk = 0; chunk < place_.chunks(device); ++chunk) {
      if (ranks[chunk] < 0) continue;
      const int vs = place_.virtual_stage(device, chunk);
      for (int unit = first_unit(vs); unit < end_unit(vs); ++unit) {
        if (!may_leave(unit)) continue;
        const Use& use = uses_(vs, unit);
        Candidate each;
        each.copy.device = static_cast<std::uint32_t>(device);
        each.copy.unit = static_cast<std::uint32_t>(unit);
        each.copy.chunk = static_cast<std::uint16_t>(chunk);
        const StageCost& cost = problem_.stage(vs, each.copy.unit);
        each.out = cost.copy_out.value();
        each.back = cost.copy_in.value();
        each.bytes = copied_bytes(problem_, program_, each.copy).value();
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
      const auto ended = std::ranges::upper_bound(ends, starts * (1 + kTimeSlack)) - ends.begin();
      const auto after = std::min<std::ptrdiff_t>(ended, use_of(copy).backward.position);
      to.in.push_back(copy);
      to.in.back().after = after == 0 ? Copy::kAnyTime : static_cast<std::uint32_t>(after - 1);
    }
  }

  // Makes the first forward that starts no earlier than the copy's end wait for it. The last of
  // several copies acts for all.
  void add_gate(const Copy& copy, double ended, std::uint32_t out, CopyPlan& plan) {
    const std::uint32_t device = copy.device;
    const auto& starts = times_.start[device];
    const auto passes = program_.passes(static_cast<int>(device));
    auto at = static_cast<size_t>(std::ranges::lower_bound(starts, ended * (1 - kTimeSlack)) -
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
  PassTimes times_;
  Grid<Use> uses_;  // by virtual stage and unit
  int devices_per_link_ = 1;
  std::vector<LinkPlan> links_;
  size_t activations_ = 1;  // that could go, and one
};

}  // namespace

Program with_offload(const Program& program, const Problem& problem, const OffloadScope& scope) {
  return Offload(program, problem, scope).run();
}

}  // namespace pipesim
