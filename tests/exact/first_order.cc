#include "tests/exact/first_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::exact {
namespace {

constexpr int kRounds = 4000;

bool keeps_limit(const Evaluation& result, const Problem& problem) {
  return std::ranges::all_of(result.devices, [&problem](const DeviceEvaluation& device) {
    return device.peak_activation <= *problem.activation_limit;
  });
}

// Passes in order of the time at which they can start, plus a handicap that is drawn for each kind
// on each stage.
class Dispatch {
 public:
  Dispatch(const Problem& problem, testing::Random& random)
      : problem_(problem),
        stages_(problem.placement.virtual_stages()),
        clock_(problem.shape.devices),
        held_(clock_.size()),
        lists_(clock_.size()) {
    double mean = 0;
    for (const StageCost& cost : problem.stages) {
      mean += (cost.forward + cost.backward_input + cost.backward_weight).value() / 3;
    }
    mean /= static_cast<double>(stages_.size());
    const double scale = random.real(0, 3) * mean;
    for (Stage& stage : stages_) {
      const auto units = static_cast<size_t>(problem.shape.microbatches);
      for (auto& arrival : stage.arrival) arrival.assign(units, kNever);
      for (double& handicap : stage.handicap) handicap = random.real(0, scale);
    }
    stages_.front().arrival[0].assign(problem.shape.microbatches, 0);
  }

  // Nothing when all devices wait for memory.
  std::optional<Program> run() && {
    while (step()) {
    }
    for (const Stage& stage : stages_) {
      if (stage.done[2] < problem_.shape.microbatches) return std::nullopt;
    }
    return Program(problem_.shape, problem_.placement, std::move(lists_));
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Stage {
    std::array<std::vector<double>, 3> arrival;  // of F, B, W: when it can start, by microbatch
    std::array<double, 3> handicap{};
    std::array<int, 3> done{};
  };

  bool step() {
    double best = kNever;
    size_t stage = 0;
    size_t kind = 0;
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (size_t k = 0; k < 3; ++k) {
        const double key = start(s, k) + stages_[s].handicap[k];
        if (key >= best) continue;
        best = key;
        stage = s;
        kind = k;
      }
    }
    if (best == kNever) return false;
    run_pass(stage, kind);
    return true;
  }

  [[nodiscard]] double start(size_t s, size_t kind) const {
    const Stage& stage = stages_[s];
    if (stage.done[kind] == problem_.shape.microbatches) return kNever;
    const auto device = static_cast<size_t>(problem_.placement.device(static_cast<int>(s)));
    const StageCost& cost = problem_.stages[s];
    const bool fits = held_[device] + cost.activation.value() <= problem_.activation_limit->value();
    if (kind == 0 && !fits) return kNever;
    return std::max(clock_[device], stage.arrival[kind][stage.done[kind]]);
  }

  void run_pass(size_t s, size_t kind) {
    constexpr std::array kKinds{PassKind::kF, PassKind::kB, PassKind::kW};
    const StageCost& cost = problem_.stages[s];
    const std::array seconds{cost.forward, cost.backward_input, cost.backward_weight};
    const std::array kept{cost.activation, cost.weight_stash - cost.activation, -cost.weight_stash};
    const int vs = static_cast<int>(s);
    const auto device = static_cast<size_t>(problem_.placement.device(vs));
    const double end = start(s, kind) + seconds[kind].value();
    const int unit = stages_[s].done[kind]++;
    clock_[device] = end;
    held_[device] += kept[kind].value();
    lists_[device].push_back(make_pass(kKinds[kind], unit, problem_.placement.chunk(vs)));
    const int down = problem_.placement.downstream(vs);
    const int up = problem_.placement.upstream(vs);
    if (kind == 0 && down < 0) arrive(vs, 1, unit, end);
    if (kind == 0 && down >= 0) arrive(down, 0, unit, end + cost.transfer.value());
    if (kind == 1 && up >= 0) arrive(up, 1, unit, end + problem_.stage(up).transfer.value());
    if (kind == 1) arrive(vs, 2, unit, end);
  }

  void arrive(int vs, size_t kind, int unit, double time) {
    stages_[vs].arrival[kind][unit] = time;
  }

  const Problem& problem_;
  std::vector<Stage> stages_;
  std::vector<double> clock_;
  std::vector<double> held_;
  PassLists lists_;
};

// The same program with B and W apart and microbatches in their order, which costs no more: where
// the k-th pass of a kind starts, the k-th of what it waits for has ended. Nothing for a program
// with overlapped blocks.
std::optional<Program> plain(const Program& program) {
  PassLists lists;
  for (int device = 0; device < program.shape().devices; ++device) {
    auto& list = lists.emplace_back();
    std::map<std::pair<PassKind, int>, int> done;
    const auto add = [&](PassKind kind, int chunk) {
      list.push_back(make_pass(kind, done[{kind, chunk}]++, chunk));
    };
    for (const Pass& pass : program.passes(device)) {
      if (pass.kind == PassKind::kFB) return std::nullopt;
      if (pass.kind != PassKind::kBW) {
        add(pass.kind, pass.chunk);
        continue;
      }
      add(PassKind::kB, pass.chunk);
      add(PassKind::kW, pass.chunk);
    }
  }
  return Program(program.shape(), program.placement(), std::move(lists));
}

// Fits wherever anything does.
Program one_microbatch_at_a_time(const Problem& problem) {
  const Placement& place = problem.placement;
  PassLists lists(static_cast<size_t>(problem.shape.devices));
  for (int i = 0; i < problem.shape.microbatches; ++i) {
    const auto add = [&](PassKind kind, int vs) {
      lists[place.device(vs)].push_back(make_pass(kind, i, place.chunk(vs)));
    };
    for (int vs = 0; vs < place.virtual_stages(); ++vs) add(PassKind::kF, vs);
    for (int vs = place.virtual_stages() - 1; vs >= 0; --vs) {
      add(PassKind::kB, vs);
      add(PassKind::kW, vs);
    }
  }
  return {problem.shape, place, std::move(lists)};
}

}  // namespace

Program first_order(const Problem& problem) {
  std::optional<Program> best;
  Seconds least;
  const auto consider = [&](Program program) {
    const Evaluation result = evaluate(program, problem);
    const Seconds time = time_of(result, problem.objective);
    if (!keeps_limit(result, problem) || (best && time >= least)) return;
    least = time;
    best.emplace(std::move(program));
  };
  consider(one_microbatch_at_a_time(problem));
  for (const Schedule* schedule : schedules()) {
    const Shape& shape = problem.shape;
    if (shape.chunks < schedule->min_chunks || shape.chunks > schedule->max_chunks) continue;
    if (schedule->place(shape.devices, shape.chunks) != problem.placement) continue;
    if (schedule->refusal(problem)) continue;
    auto program = plain(schedule->plan(problem));
    if (program) consider(std::move(*program));
  }
  testing::Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    Dispatch dispatch(problem, random);
    auto program = std::move(dispatch).run();
    if (program) consider(std::move(*program));
  }
  if (!best) throw InfeasibleError("one microbatch does not fit into the limit");
  return std::move(*best);
}

}  // namespace pipesim::exact
