// The lower bound of programs with overlapped blocks.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <vector>

#include "sim/core/error.h"
#include "sim/exact/prove.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/pairs.h"
#include "sim/planning/schedule.h"
#include "sim/search/bound.h"
#include "tests/pipeline/problems.h"

namespace pipesim::paired_bound_test {
namespace {

Problem random_problem(testing::Random& random, const Schedule& schedule) {
  const Shape shape{random.integer(1, 6), schedule.default_chunks, random.integer(1, 20), 1};
  Problem problem = testing::random_problem_with_blocks(
      random, shape, schedule.place(shape.devices, shape.chunks));
  problem.options = options_of(schedule);
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  return problem;
}

TEST(PairedBound, IsNeverAboveAnOrderWithBlocks) {
  testing::Random random(11);
  int compared = 0;
  int tighter = 0;
  for (int round = 0; round < 20; ++round) {
    for (const char* name : {"1f1b", "zb-h1", "zb-h2", "gpipe", "dualpipev", "v-half"}) {
      const Schedule& schedule = *find_schedule(name);
      const Problem problem = random_problem(random, schedule);
      if (schedule.refusal(for_planning(problem))) continue;
      const Program order = schedule.plan(for_planning(problem));
      const Bytes held = evaluate(order, problem).peak_activation();
      for (const Bytes limit : {held, 1.5 * held}) {
        SCOPED_TRACE(fmt::format("round {} {}", round, name));
        const Program paired = with_pairs(order, problem, limit, 2e4);
        const Evaluation result = evaluate(paired, problem);
        const Bytes kept = std::max(limit, result.peak_activation());
        const Seconds bound = bound_with_pairs(problem, kept).seconds();
        EXPECT_LE(bound.value(), time_of(result, problem.objective).value() * (1 + 1e-9));
        const Seconds scaled = lower_bound(without_overlap(problem), kept);
        EXPECT_GE(bound.value(), scaled.value() * (1 - 1e-9));
        ++compared;
        tighter += bound > (1 + 1e-6) * scaled ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(tighter, compared / 3);
}

// One device's passes in order, with any blocks.
struct Word {
  std::vector<Pass> passes;
  std::vector<OverlappedPair> pairs;
};

// Every word of one chunk that keeps microbatches in their order.
class EveryWord {
 public:
  explicit EveryWord(int microbatches) : m_(microbatches) { extend(); }
  [[nodiscard]] const std::vector<Word>& words() const { return words_; }

 private:
  void extend() {
    if (weights_ == m_) words_.push_back(word_);
    const bool forward = forwards_ < m_;
    if (forward) {
      ++forwards_;
      with(make_pass(PassKind::kF, forwards_ - 1), {});
      --forwards_;
    }
    for (const PassKind kind : {PassKind::kB, PassKind::kW, PassKind::kBW}) {
      const bool is_weight = kind == PassKind::kW;
      if (is_weight ? weights_ == backwards_ : backwards_ == forwards_) continue;
      if (kind == PassKind::kBW && weights_ != backwards_) continue;
      const Pass pass = make_pass(kind, is_weight ? weights_ : backwards_);
      backwards_ += is_weight ? 0 : 1;
      weights_ += kind == PassKind::kB ? 0 : 1;
      with(pass, {});
      if (forward) {
        const Pass beside = make_pass(PassKind::kF, forwards_++);
        with(make_pass(PassKind::kFB, static_cast<int>(word_.pairs.size())),
             OverlappedPair{beside, pass});
        --forwards_;
      }
      backwards_ -= is_weight ? 0 : 1;
      weights_ -= kind == PassKind::kB ? 0 : 1;
    }
  }

  void with(const Pass& pass, const std::optional<OverlappedPair>& pair) {
    word_.passes.push_back(pass);
    if (pair) word_.pairs.push_back(*pair);
    extend();
    word_.passes.pop_back();
    if (pair) word_.pairs.pop_back();
  }

  int m_;
  int forwards_ = 0;
  int backwards_ = 0;
  int weights_ = 0;
  Word word_;
  std::vector<Word> words_;
};

// The least time of all orders, by the bytes that they keep.
std::map<Bytes, Seconds> least_of_all(const Problem& problem) {
  const EveryWord every(problem.shape.microbatches);
  std::map<Bytes, Seconds> least;
  const auto run = [&](const std::vector<const Word*>& chosen) {
    PassLists lists;
    std::vector<OverlappedPair> pairs;
    for (const Word* word : chosen) {
      lists.push_back(word->passes);
      for (Pass& pass : lists.back()) {
        if (pass.kind != PassKind::kFB) continue;
        pairs.push_back(word->pairs[pass.microbatch]);
        pass = make_pass(PassKind::kFB, static_cast<int>(pairs.size()) - 1);
      }
    }
    try {
      const Evaluation result = evaluate({problem.shape, problem.placement, lists, pairs}, problem);
      const Seconds time = time_of(result, problem.objective);
      const auto [known, first] = least.try_emplace(result.peak_activation(), time);
      if (!first) known->second = std::min(known->second, time);
    } catch (const InfeasibleError&) {
      // A deadlock: no program.
    }
  };
  for (const Word& one : every.words()) {
    if (problem.shape.devices == 1) run({&one});
    for (const Word& other : every.words()) {
      if (problem.shape.devices == 2) run({&one, &other});
    }
  }
  return least;
}

// One device's six microbatches: all but the first F and the last backward in blocks.
Program in_blocks(const Problem& problem) {
  PassLists lists(1);
  std::vector<OverlappedPair> pairs;
  lists[0].push_back(make_pass(PassKind::kF, 0));
  for (int i = 1; i < 6; ++i) {
    lists[0].push_back(make_pass(PassKind::kFB, i - 1));
    pairs.push_back({make_pass(PassKind::kF, i), make_pass(PassKind::kBW, i - 1)});
  }
  lists[0].push_back(make_pass(PassKind::kBW, 5));
  return {problem.shape, problem.placement, lists, pairs};
}

// Stages that differ; blocks from a tenth of their passes on, shorter than a pass alone too.
Problem random_of_short_blocks(testing::Random& random) {
  const int devices = random.integer(1, 2);
  const Shape shape{devices, 1, devices == 1 ? 3 : 2, 1};
  Problem problem =
      testing::random_problem(random, shape, Placement::looped(devices, 1), random.coin());
  for (StageCost& stage : problem.stages) {
    stage.overlapped =
        random.real(0.1, 1) * (stage.forward + stage.backward_input + stage.backward_weight);
    if (random.coin()) stage.weight_stash = stage.activation;
  }
  problem.kinds.clear();
  problem.kind_of_unit.clear();
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  return problem;
}

TEST(PairedBound, IsNeverAboveTheBestOfAllOrders) {
  testing::Random random(3);
  int reached = 0;
  for (int round = 0; round < 60; ++round) {
    const Problem problem = random_of_short_blocks(random);
    std::optional<Seconds> least;
    for (const auto& [kept, time] : least_of_all(problem)) {
      SCOPED_TRACE(fmt::format("round {}, {} bytes", round, kept.value()));
      least = std::min(time, least.value_or(time));
      const Seconds bound = bound_with_pairs(problem, kept).seconds();
      EXPECT_LE(bound.value(), least->value() * (1 + 1e-9));
      reached += bound.value() > least->value() * (1 - 1e-9) ? 1 : 0;
    }
  }
  EXPECT_GT(reached, 10);
}

// A block as long as one of its three passes: two microbatches are held at a time, for two blocks.
TEST(PairedBound, CountsNoMoreOfABackwardThanItsBlockTakes) {
  Problem problem = testing::make_problem({1, 1, 6, 1}, {4, 4, 4, 0});
  problem.stages[0].overlapped = Seconds(4);
  EXPECT_EQ(evaluate(in_blocks(problem), problem).peak_activation(), Bytes(2));
  EXPECT_EQ(evaluate(in_blocks(problem), problem).makespan, Seconds(4 + 5 * 4 + 8));
  EXPECT_LE(bound_with_pairs(problem, Bytes(2)).seconds(), Seconds(4 + 5 * 4 + 8));
}

// A device whose block hides nothing waits for less than one whose block does would say.
TEST(PairedBound, SaysHowLongItsDeviceWaits) {
  Problem problem = testing::make_problem({2, 1, 6, 1}, {2, 2, 2, 0});
  problem.stages[0].overlapped = Seconds(6);
  problem.stages[1].overlapped = Seconds(4);
  const Seconds bound = bound_with_pairs(problem, Bytes(6)).seconds();
  const BoundReason reason = reason_of_bound_with_pairs(problem, Bytes(6));
  EXPECT_EQ(reason.device, 0);
  EXPECT_EQ(reason.idle, bound - Seconds(6 * 6));
}

// One device that holds enough: all but the first F and the last backward run in blocks.
TEST(PairedBound, IsReachedByOneDevice) {
  Problem problem = testing::make_problem({1, 1, 6, 1}, {2, 2, 2, 0});
  problem.stages[0].overlapped = Seconds(4);
  EXPECT_EQ(bound_with_pairs(problem, Bytes(6)).seconds(), Seconds(6 * 4 + 2));
  EXPECT_EQ(evaluate(in_blocks(problem), problem).makespan, Seconds(2 + 5 * 4 + 4));
}

TEST(PairedBound, IsThatOfSinglePassesWhereBlocksSaveNothing) {
  Problem problem = testing::make_problem({4, 1, 8, 1}, {2, 2, 2, 1});
  EXPECT_EQ(bound_with_pairs(problem, Bytes(4)).seconds(), lower_bound(problem, Bytes(4)));
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(6);
  EXPECT_EQ(bound_with_pairs(problem, Bytes(4)).seconds(), lower_bound(problem, Bytes(4)));
}

// A proof says of what it speaks: single passes are ordered by CBC, blocks are bounded.
TEST(Proof, WithPairsIsByTheBoundAlone) {
  Problem problem = testing::make_problem({2, 1, 6, 1}, {2, 2, 2, 0});
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(4);
  const Program order = with_pairs(find_schedule("1f1b")->plan(problem), problem, Bytes(3), 1e5);
  const exact::Proof proof = exact::prove(order, problem, Bytes(3), {});
  EXPECT_EQ(proof.ended, exact::Ended::kPairs);
  EXPECT_FALSE(proof.proven());
  EXPECT_EQ(proof.bound, bound_with_pairs(problem, Bytes(3)).seconds());
  EXPECT_EQ(proof.time, time_of(evaluate(order, problem), problem.objective));
}

}  // namespace
}  // namespace pipesim::paired_bound_test
