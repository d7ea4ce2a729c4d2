#include "sim/planning/list_schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/grid.h"
#include "sim/core/stop.h"
#include "sim/core/text.h"
#include "sim/pipeline/dependencies.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

constexpr double kNotReady = std::numeric_limits<double>::infinity();

bool is_listed(PassKind kind) {
  return kind == PassKind::kF || kind == PassKind::kB || kind == PassKind::kW ||
         kind == PassKind::kBW;
}

}  // namespace

class ListScheduler {
 public:
  ListScheduler(const Problem& problem, const NextPassRule& rule)
      : problem_(problem),
        place_(problem.placement),
        rule_(rule),
        splits_(problem.shape.splits),
        units_(problem.shape.units()),
        limit_(problem.activation_limit ? problem.activation_limit->value() * kRounding
                                        : kNotReady),
        clock_(place_.devices(), 0),
        held_(place_.devices(), 0),
        whole_(place_.devices(), 0),
        wanted_(place_.devices()),
        stages_(place_.virtual_stages()),
        input_(stages_.size(), units_, kNotReady),
        gradient_(stages_.size(), units_, kNotReady),
        lists_(place_.devices()) {
    if (is_sharded(problem.vocabulary)) {
      throw LogicError("list_schedule places no passes of a sharded vocabulary");
    }
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      Stage& stage = stages_[vs];
      stage.first = place_.first_unit(vs, units_);
      stage.units = place_.end_unit(vs, units_) - stage.first;
      left_ += 3 * stage.units;
      whole_[place_.device(vs)] += splits_ * problem.stage(vs).activation.value();
      if (place_.upstream(vs) >= 0) continue;
      for (int i = 0; i < stage.units; ++i) input_(vs, stage.first + i) = 0;
    }
    for (int d = 0; d < place_.devices(); ++d) {
      if (problem.activation_limit && whole_[d] > limit_) {
        throw LogicError(fmt::format(
            "list_schedule: the limit of {} is less than the {} that one microbatch of every chunk "
            "keeps on device {}",
            human(*problem.activation_limit), human(Bytes(whole_[d])), d));
      }
      events_.emplace(0, d);
    }
  }

  Program run() {
    while (!events_.empty()) {
      check_stop();
      const auto [time, device] = events_.top();
      events_.pop();
      now_ = time;
      if (clock_[device] <= now_) decide(device);
    }
    if (left_ > 0) report_stall();
    return {problem_.shape, place_, std::move(lists_)};
  }

 private:
  friend class Turn;

  // Passes run of a virtual stage, each kind in its own order of units.
  struct Stage {
    int first = 0, units = 0;
    int f = 0, b = 0, w = 0;
  };
  using Event = std::pair<double, int>;

  void decide(int device) {
    const std::optional<NextPass> next = rule_(Turn(*this, device));
    wanted_[device] = next;
    if (!next) return;
    if (!is_listed(next->kind) || next->chunk < 0 || next->chunk >= place_.chunks(device)) {
      throw LogicError(fmt::format(
          "list_schedule: the rule names {} of chunk {} on device {}; expected F, B, W or BW of a "
          "chunk from 0 to {}",
          to_text(next->kind), next->chunk, device, place_.chunks(device) - 1));
    }
    const int vs = place_.virtual_stage(device, next->chunk);
    if (ready(next->kind, vs)) start(device, vs, *next);
  }

  [[nodiscard]] bool ready(PassKind kind, int vs) const {
    return arrival(kind, vs) <= now_ && (kind != PassKind::kF || fits(vs));
  }

  [[nodiscard]] double arrival(PassKind kind, int vs) const {
    const Stage& stage = stages_[vs];
    if (kind == PassKind::kW) return stage.w < stage.b ? 0 : kNotReady;
    if (kind == PassKind::kBW && stage.w < stage.b) return kNotReady;
    if ((kind == PassKind::kF ? stage.f : stage.b) == stage.units) return kNotReady;
    return kind == PassKind::kF ? input_(vs, unit(kind, stage, stage.f))
                                : gradient_(vs, unit(kind, stage, stage.b));
  }

  // The unit of the stage's `count`-th pass of a kind: of a microbatch's splits B begins at the
  // last.
  [[nodiscard]] int unit(PassKind kind, const Stage& stage, int count) const {
    if (kind == PassKind::kF) return stage.first + count;
    return stage.first + count / splits_ * splits_ + (splits_ - 1 - count % splits_);
  }

  // True if the next F of the stage has memory.
  [[nodiscard]] bool fits(int vs) const {
    if (limit_ == kNotReady) return true;
    const int device = place_.device(vs);
    const double more = problem_.stage(vs).activation.value();
    if (place_.chunks(device) == 1) return held_[device] + more <= limit_;
    int oldest = units_;  // microbatch, counted from the stage's first
    for (int c = 0; c < place_.chunks(device); ++c) {
      oldest = std::min(oldest, stages_[place_.virtual_stage(device, c)].w / splits_);
    }
    if (stages_[vs].f / splits_ == oldest) return true;
    return held_[device] - held_by(device, oldest) + more + whole_[device] <= limit_;
  }

  [[nodiscard]] double held_by(int device, int microbatch) const {
    const auto of = [&](int count) { return std::clamp(count - microbatch * splits_, 0, splits_); };
    double held = 0;
    for (int c = 0; c < place_.chunks(device); ++c) {
      const int vs = place_.virtual_stage(device, c);
      const Stage& stage = stages_[vs];
      const double activation = problem_.stage(vs).activation.value();
      const double stash = problem_.stage(vs).weight_stash.value();
      held += of(stage.f) * activation - of(stage.b) * (activation - stash) - of(stage.w) * stash;
    }
    return held;
  }

  void start(int device, int vs, const NextPass& next) {
    const PassKind kind = next.kind;
    Stage& stage = stages_[vs];
    const StageCost& cost = problem_.stage(vs);
    int& count = kind == PassKind::kF ? stage.f : kind == PassKind::kW ? stage.w : stage.b;
    const int of = unit(kind, stage, count++);
    if (kind == PassKind::kBW) ++stage.w;
    lists_[device].push_back(make_pass(kind, of, next.chunk));
    left_ -= kind == PassKind::kBW ? 2 : 1;

    Seconds seconds;
    Bytes more;
    if (kind == PassKind::kF) {
      seconds = cost.forward;
      more = cost.activation;
    }
    if (is_backward(kind)) {
      seconds += cost.backward_input;
      more += cost.weight_stash - cost.activation;
    }
    if (kind == PassKind::kW || kind == PassKind::kBW) {
      seconds += cost.backward_weight;
      more += Bytes(0) - cost.weight_stash;
    }
    held_[device] += more.value();
    clock_[device] = now_ + seconds.value();
    events_.emplace(clock_[device], device);
    deliver({kind, vs}, of, clock_[device]);
  }

  void deliver(const StagePass& pass, int unit, double end) {
    const StagePass target = target_of(place_, pass);
    if (!target.exists()) return;
    if (target.vs != pass.vs) {
      // By the boundary of the stage that is upstream of the other.
      end += problem_.stage(target.kind == PassKind::kF ? pass.vs : target.vs).transfer.value();
    }
    (target.kind == PassKind::kF ? input_ : gradient_)(target.vs, unit) = end;
    const int receiver = place_.device(target.vs);
    if (receiver != place_.device(pass.vs)) events_.emplace(end, receiver);
  }

  [[nodiscard]] std::string stalled(int device) const {
    int left = 0;
    std::string ready_ones;
    for (int c = 0; c < place_.chunks(device); ++c) {
      const int vs = place_.virtual_stage(device, c);
      const Stage& stage = stages_[vs];
      left += 3 * stage.units - stage.f - stage.b - stage.w;
      for (const PassKind kind : {PassKind::kF, PassKind::kB, PassKind::kW}) {
        if (!ready(kind, vs)) continue;
        ready_ones += (ready_ones.empty() ? "" : ", ") + text(kind, vs);
      }
    }
    if (left == 0) return fmt::format("device {} has run all its passes", device);
    const std::string instead =
        ready_ones.empty() ? "nothing is ready" : fmt::format("ready are {}", ready_ones);
    const auto& wanted = wanted_[device];
    if (!wanted) return fmt::format("device {}: the rule names no pass; {}", device, instead);
    const int vs = place_.virtual_stage(device, wanted->chunk);
    return fmt::format("device {}: the rule names {}, {}; {}", device, text(wanted->kind, vs),
                       reason(wanted->kind, vs), instead);
  }

  [[nodiscard]] std::string text(PassKind kind, int vs) const {
    const Stage& stage = stages_[vs];
    const int count = kind == PassKind::kF ? stage.f : kind == PassKind::kW ? stage.w : stage.b;
    if (count >= stage.units) return fmt::format("{}{}", vs, to_text(kind));
    return fmt::format("{}{}{}", vs, to_text(kind), unit(kind, stage, count));
  }

  [[nodiscard]] std::string reason(PassKind kind, int vs) const {
    const Stage& stage = stages_[vs];
    const int device = place_.device(vs);
    if ((kind == PassKind::kF ? stage.f : stage.b) == stage.units && kind != PassKind::kW) {
      return "of which none is left";
    }
    if (arrival(kind, vs) <= now_) {
      return fmt::format("which lacks memory ({} held, the limit is {})",
                         human(Bytes(held_[device])), human(*problem_.activation_limit));
    }
    if (kind == PassKind::kBW && stage.w < stage.b) return "while the chunk owes a W";
    const StagePass source = source_of(place_, {kind, vs});
    if (source.vs == vs) return fmt::format("whose own {} has not run", to_text(source.kind));
    return fmt::format("which waits for stage {} on device {}", source.vs,
                       place_.device(source.vs));
  }

  [[noreturn]] void report_stall() const {
    std::string text =
        "list_schedule: every device waits, and passes are left; expected a rule "
        "that names a ready pass on one of them";
    for (int d = 0; d < place_.devices(); ++d) text += "\n  " + stalled(d);
    throw LogicError(text);
  }

  const Problem& problem_;
  const Placement& place_;
  const NextPassRule& rule_;
  int splits_;
  int units_;
  double limit_;
  double now_ = 0;
  long left_ = 0;              // F, B and W to run
  std::vector<double> clock_;  // by device: when it is free
  std::vector<double> held_;   // likewise, bytes
  std::vector<double> whole_;  // likewise: what one microbatch of every chunk keeps
  std::vector<std::optional<NextPass>> wanted_;  // likewise: what the rule named last
  std::vector<Stage> stages_;                    // by virtual stage
  Grid<double> input_;                           // by stage and unit: when F can start
  Grid<double> gradient_;                        // and B
  PassLists lists_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

const Problem& Turn::problem() const { return of_.problem_; }
Seconds Turn::now() const { return Seconds(of_.now_); }

int Turn::ran(PassKind kind, int chunk) const {
  const auto& stage = of_.stages_[of_.place_.virtual_stage(device_, chunk)];
  return kind == PassKind::kF ? stage.f : kind == PassKind::kW ? stage.w : stage.b;
}

int Turn::forwards_left(int chunk) const {
  const auto& stage = of_.stages_[of_.place_.virtual_stage(device_, chunk)];
  return stage.units - stage.f;
}

int Turn::in_flight() const {
  int units = 0;
  for (int c = 0; c < of_.place_.chunks(device_); ++c)
    units += ran(PassKind::kF, c) - ran(PassKind::kW, c);
  return units;
}

bool Turn::ready(PassKind kind, int chunk) const {
  return of_.ready(kind, of_.place_.virtual_stage(device_, chunk));
}

Seconds Turn::arrival(PassKind kind, int chunk) const {
  return Seconds(of_.arrival(kind, of_.place_.virtual_stage(device_, chunk)));
}

std::optional<NextPass> Turn::first_ready(std::initializer_list<PassKind> kinds) const {
  for (const PassKind kind : kinds) {
    std::optional<NextPass> best;
    std::pair<int, int> best_key;
    for (int c = 0; c < of_.place_.chunks(device_); ++c) {
      if (!ready(kind, c)) continue;
      const int stage = of_.place_.model_stage(of_.place_.virtual_stage(device_, c));
      const std::pair key{ran(kind, c), kind == PassKind::kF ? -stage : stage};
      if (best && best_key <= key) continue;
      best = NextPass{kind, c};
      best_key = key;
    }
    if (best) return best;
  }
  return std::nullopt;
}

Program list_schedule(const Problem& problem, const NextPassRule& rule) {
  return ListScheduler(problem, rule).run();
}

}  // namespace pipesim
