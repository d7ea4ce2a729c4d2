// Units that cost unequally, from the problem to timelines and peaks.
#include "sim/pipeline/unequal_units.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/metrics/analyze.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::unequal_units_test {
namespace {

using testing::Random;
using testing::random_case;
using testing::random_factors;
using testing::RandomCase;
using testing::set_factors;

struct Played {
  std::vector<std::vector<double>> starts;  // by device and position
  std::vector<double> peaks;
};

// Plays a program pass by pass by the rules of docs/reference/model.md, with a factor on all that a
// unit costs. Shares nothing with the walk, the visitors and Problem::stage(vs, unit).
class Play {
 public:
  Play(const Program& program, const std::vector<StageCost>& base,
       const std::vector<double>& factors)
      : program_(program), place_(program.placement()), base_(base), factors_(factors) {}

  Played play() {
    const int devices = place_.devices();
    std::vector<size_t> at(devices, 0);
    std::vector<double> clock(devices, 0);
    changes_.resize(devices);
    Played played{std::vector<std::vector<double>>(devices), {}};
    for (bool went = true; went;) {
      went = false;
      for (int d = 0; d < devices; ++d) {
        const auto passes = program_.passes(d);
        while (at[d] < passes.size() && ready(d, passes[at[d]])) {
          const double start = std::max(clock[d], arrival_);
          clock[d] = start + run(d, passes[at[d]], start);
          played.starts[d].push_back(start);
          ++at[d];
          went = true;
        }
      }
    }
    for (auto& changes : changes_) {
      std::ranges::sort(changes);
      double held = 0;
      double peak = 0;
      for (const auto& [time, bytes] : changes) peak = std::max(peak, held += bytes);
      played.peaks.push_back(peak);
    }
    return played;
  }

 private:
  using Key = std::tuple<bool, int, std::uint32_t>;  // backward, stage, unit

  // True if all inputs of the pass have come; the last at `arrival_`.
  bool ready(int device, const Pass& pass) {
    arrival_ = 0;
    if (pass.kind == PassKind::kFB) {
      const OverlappedPair& pair = program_.pair(pass);
      return waited(device, pair.forward) && waited(device, pair.backward);
    }
    return waited(device, pass);
  }
  bool waited(int device, const Pass& pass) {
    const int vs = place_.virtual_stage(device, pass.chunk);
    const bool backward = is_backward(pass.kind);
    if (pass.kind != PassKind::kF && !backward) return true;
    const auto splits = static_cast<std::uint32_t>(program_.shape().splits);
    const std::uint32_t split = pass.microbatch % splits;
    if (!backward && split > 0 && !ends_.contains({false, vs, pass.microbatch - 1})) return false;
    if (backward && split + 1 < splits && !ends_.contains({true, vs, pass.microbatch + 1})) {
      return false;
    }
    const int from = backward ? place_.downstream(vs) : place_.upstream(vs);
    if (from < 0) return !backward || ends_.contains({false, vs, pass.microbatch});
    const auto found = ends_.find({backward, from, pass.microbatch});
    if (found == ends_.end()) return false;
    const double message = factors_[pass.microbatch] * base_[std::min(from, vs)].transfer.value();
    arrival_ = std::max(arrival_, found->second + message);
    return true;
  }

  double run(int device, const Pass& pass, double start) {
    if (pass.kind == PassKind::kFB) return run_block(device, program_.pair(pass), start);
    const int vs = place_.virtual_stage(device, pass.chunk);
    const StageCost& cost = base_[vs];
    const double factor = factors_[pass.microbatch];
    const double f = cost.forward.value();
    const double b = cost.backward_input.value();
    const double w = cost.backward_weight.value();
    double seconds = b + w;
    if (pass.kind == PassKind::kF) seconds = f;
    if (pass.kind == PassKind::kB) seconds = b;
    if (pass.kind == PassKind::kW) seconds = w;
    if (pass.kind == PassKind::kR) seconds = cost.recompute ? cost.recompute->value() : f;
    seconds *= factor;
    hold(device, pass, factor, start, start + seconds);
    if (pass.kind == PassKind::kF || is_backward(pass.kind)) {
      ends_[{is_backward(pass.kind), vs, pass.microbatch}] = start + seconds;
    }
    return seconds;
  }

  // Each pass takes the share of its seconds that its stage's block takes of its F and BW; B or W
  // alone, with F, as large a share as BW.
  double run_block(int device, const OverlappedPair& pair, double start) {
    const auto part = [&](const Pass& pass, double& own, double& block) {
      const StageCost& cost = base_[place_.virtual_stage(device, pass.chunk)];
      const double backward = cost.backward_input.value() + cost.backward_weight.value();
      const double factor = factors_[pass.microbatch];
      own = factor * (pass.kind == PassKind::kF ? cost.forward.value() : backward);
      block = factor * cost.overlapped->value();
      return cost.overlapped->value() / (cost.forward.value() + backward) * own;
    };
    double f = 0;
    double bw = 0;
    double of_f = 0;
    double of_bw = 0;
    const double both = part(pair.forward, f, of_f) + part(pair.backward, bw, of_bw);
    double seconds = std::max({both, std::min(f, of_f), std::min(bw, of_bw)});
    if (pair.backward.kind != PassKind::kBW) {
      const StageCost& cost = base_[place_.virtual_stage(device, pair.backward.chunk)];
      const bool input = pair.backward.kind == PassKind::kB;
      const double alone = factors_[pair.backward.microbatch] *
                           (input ? cost.backward_input : cost.backward_weight).value();
      seconds = std::max(
          {seconds * (f + alone) / (f + bw), std::min(f, seconds), std::min(alone, seconds)});
    }
    for (const Pass& pass : {pair.forward, pair.backward}) {
      hold(device, pass, factors_[pass.microbatch], start, start + seconds);
      if (pass.kind == PassKind::kW) continue;
      ends_[{is_backward(pass.kind), place_.virtual_stage(device, pass.chunk), pass.microbatch}] =
          start + seconds;
    }
    return seconds;
  }

  void hold(int device, const Pass& pass, double factor, double start, double end) {
    const int vs = place_.virtual_stage(device, pass.chunk);
    const StageCost& cost = base_[vs];
    const double all = factor * cost.activation.value();
    const double stash = factor * cost.weight_stash.value();
    const double input = factor * cost.checkpoint.value();
    auto& changes = changes_[device];
    if (pass.kind == PassKind::kF)
      changes.emplace_back(start, program_.recomputes(vs) ? input : all);
    if (pass.kind == PassKind::kR) changes.emplace_back(start, all - input);
    if (pass.kind == PassKind::kB) changes.emplace_back(end, stash - all);
    if (pass.kind == PassKind::kW) changes.emplace_back(end, -stash);
    if (pass.kind == PassKind::kBW) changes.emplace_back(end, -all);
  }

  const Program& program_;
  const Placement& place_;
  const std::vector<StageCost>& base_;
  const std::vector<double>& factors_;
  std::map<Key, double> ends_;
  std::vector<std::vector<std::pair<double, double>>> changes_;  // bytes of a device over time
  double arrival_ = 0;
};

TEST(UnequalUnits, RunAsAPlayByHandDoes) {
  Random random(11);
  for (int i = 0; i < 400; ++i) {
    RandomCase drawn = random_case(random, true);
    const std::vector<StageCost> base = drawn.problem.stages;
    const auto factors = random_factors(random, drawn.problem.shape.units());
    set_factors(drawn.problem, factors);
    const Played played = Play(drawn.program, base, factors).play();

    const auto program = std::make_shared<const Program>(drawn.program);
    const TaskGraph graph = build_task_graph(program, drawn.problem);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    std::vector<std::vector<double>> starts(drawn.problem.shape.devices);
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.kind == TaskKind::kCompute) starts[of.device].push_back(timeline.start[task]);
    }
    const Evaluation evaluated = evaluate(drawn.program, drawn.problem);
    const Report report = analyze(graph, timeline);
    for (size_t d = 0; d < starts.size(); ++d) {
      ASSERT_EQ(starts[d].size(), played.starts[d].size());
      for (size_t at = 0; at < starts[d].size(); ++at) {
        EXPECT_NEAR(starts[d][at], played.starts[d][at], 1e-9 * (1 + played.starts[d][at]));
      }
      EXPECT_NEAR(evaluated.devices[d].peak_activation.value(), played.peaks[d], 1e-9);
      EXPECT_NEAR(report.devices[d].peak_activation.value(), played.peaks[d], 1e-9);
    }
  }
}

TEST(UnequalUnits, EvaluateToTheBitAsTheyReplay) {
  Random random(12);
  for (int i = 0; i < 200; ++i) {
    RandomCase drawn = random_case(random);
    set_factors(drawn.problem, random_factors(random, drawn.problem.shape.units()));
    const TaskGraph graph =
        build_task_graph(std::make_shared<const Program>(drawn.program), drawn.problem);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const Evaluation evaluated = evaluate(drawn.program, drawn.problem);
    double last = 0;
    for (const DeviceEvaluation& device : evaluated.devices) {
      last = std::max(last, device.last_end.value());
    }
    EXPECT_EQ(std::ranges::max(timeline.end), last);
  }
}

TEST(UnequalUnits, WithFactorsOfOneAreTheProblemThatWasThere) {
  Random random(13);
  for (int i = 0; i < 50; ++i) {
    RandomCase drawn = random_case(random);
    const auto program = std::make_shared<const Program>(drawn.program);
    const TaskGraph before = build_task_graph(program, drawn.problem);
    const Timeline replayed = make_replay_engine()->run(before, {}, {});
    // Units of one kind, and of as many kinds as units.
    Problem equal = drawn.problem;
    set_kinds(equal, {{1, equal.stages}}, std::vector<std::uint32_t>(equal.shape.units(), 0));
    EXPECT_TRUE(equal.kinds.empty());
    Problem many = drawn.problem;
    set_factors(many, std::vector<double>(many.shape.units(), 1));
    for (const Problem& each : {equal, many}) {
      const TaskGraph graph = build_task_graph(program, each);
      const Timeline again = make_replay_engine()->run(graph, {}, {});
      EXPECT_EQ(replayed.start, again.start);
      EXPECT_EQ(replayed.end, again.end);
    }
  }
}

// A permutation flow shop of equal machines takes the sum, and the largest on every other machine.
TEST(UnequalUnits, FillGPipeAsAFlowShop) {
  const Schedule& gpipe = *find_schedule("gpipe");
  Random random(14);
  for (const int devices : {1, 2, 3, 5, 8}) {
    Problem problem = testing::make_problem({devices, 1, 7, 1}, gpipe.place(devices, 1), {2, 3, 1});
    const Program program = gpipe.plan(problem);
    const auto factors = random_factors(random, 7);
    set_factors(problem, factors);
    const double sum = std::accumulate(factors.begin(), factors.end(), 0.0);
    EXPECT_EQ(evaluate(program, problem).makespan,
              Seconds(6 * (sum + (devices - 1) * std::ranges::max(factors))));
    EXPECT_EQ(evaluate(program, problem).peak_activation(), Bytes(sum));
  }
}

TEST(UnequalUnits, ArePlannedWithByTheirMeanAndTheirLargest) {
  Problem problem = testing::make_problem({1, 1, 2, 1}, {4, 2, 2});
  set_factors(problem, {1, 3});
  EXPECT_EQ(problem.stage(0).forward, Seconds(8));
  EXPECT_EQ(problem.stage(0).activation, Bytes(3));
  EXPECT_EQ(problem.stage(0, 1).forward, Seconds(12));
  EXPECT_EQ(problem.size(1), 3);
}

}  // namespace
}  // namespace pipesim::unequal_units_test
