// Every registered schedule, over a grid of shapes and times, against what it claims of itself.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <set>

#include "sim/core/text.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::claims_test {
namespace {

using testing::Times;

// How the stages of a problem differ.
enum class Stages { kEqual, kUnequalTimes, kUnequalBoundaries };

struct Costs {
  const char* name;
  Times times;
  Stages stages = Stages::kEqual;
};

constexpr Costs kEqualTimes{"F = B = W", {1, 1, 1, 0}};
constexpr Costs kUnequalTimes{"F, B, W = 10, 12, 8", {10, 12, 8, 0}};
constexpr Costs kCosts[] = {
    kEqualTimes,
    kUnequalTimes,
    {"measured, W < B < F", {11.347e-3, 11.248e-3, 8.132e-3, 0}},
    {"F < W < B", {4, 10, 8, 0}},
    {"B < W < F", {10, 4, 6, 0}},
    {"W above both", {2, 3, 7, 0}},
    {"with transfers", {10, 12, 8, 1}},
    {"long transfers", {3, 2, 1, 9}},
    {"unequal stages", {10, 12, 8, 0}, Stages::kUnequalTimes},
    {"unequal stages with transfers", {10, 12, 8, 1}, Stages::kUnequalTimes},
    {"unequal boundaries", {10, 12, 8, 1}, Stages::kUnequalBoundaries},
};

Problem make(const Schedule& schedule, const Shape& shape, const Costs& costs) {
  Problem problem =
      testing::make_problem(shape, schedule.place(shape.devices, shape.chunks), costs.times);
  for (size_t vs = 0; vs < problem.stages.size(); ++vs) {
    StageCost& cost = problem.stages[vs];
    const double more = 1 + static_cast<double>(vs * 7 % 5) / 4;
    cost.overlapped = cost.forward + cost.backward_input + cost.backward_weight;
    if (costs.stages == Stages::kUnequalTimes) {
      cost.forward = more * cost.forward;
      cost.backward_input = Seconds(costs.times.backward_input + static_cast<double>(vs % 3));
      cost.backward_weight = Seconds(costs.times.backward_weight * (3 - more));
    }
    if (costs.stages == Stages::kUnequalBoundaries) cost.transfer = more * cost.transfer;
  }
  return problem;
}

std::string describe(const Problem& problem) {
  std::string text = fmt::format("p {} v {} m {}", problem.shape.devices, problem.shape.chunks,
                                 problem.shape.microbatches);
  for (const auto& [name, value] : problem.options) {
    if (const long* number = std::get_if<long>(&value))
      text += fmt::format(" {} {}", name, *number);
    if (std::holds_alternative<bool>(value)) text += " " + name;
  }
  return text;
}

bool same(const Program& a, const Program& b) {
  for (int device = 0; device < a.shape().devices; ++device) {
    if (!std::ranges::equal(a.passes(device), b.passes(device))) return false;
  }
  return std::ranges::equal(a.pairs(), b.pairs());
}

class Claims : public ::testing::TestWithParam<const Schedule*> {
 protected:
  [[nodiscard]] const Schedule& schedule() const { return *GetParam(); }

  // Calls `visit` with the problem of every shape of the grid.
  template <class Visit>
  void each_shape(const Costs& costs, Visit visit) const {
    for (int p = 1; p <= 16; ++p) each_shape(costs, p, visit);
  }
  // The same of a few sizes, for what is no claim and costs several plans of every shape.
  template <class Visit>
  void each_shape_of_few_sizes(const Costs& costs, Visit visit) const {
    for (const int p : {1, 2, 3, 4, 5, 6, 8, 12}) each_shape(costs, p, visit);
  }
  template <class Visit>
  void each_shape(const Costs& costs, int p, Visit visit) const {
    for (const int m : std::set<int>{1, p - 1, p, p + 1, 2 * p, 4 * p}) {
      const int last = std::min(schedule().min_chunks + 2, schedule().max_chunks);
      for (int v = schedule().min_chunks; m > 0 && v <= last; ++v) {
        if (HasFailure()) return;  // one shape says enough
        visit(make(schedule(), {p, v, m, 1}, costs));
      }
    }
  }

  // The problem with each value of each option that may matter at its shape.
  [[nodiscard]] std::vector<Problem> with_options(const Problem& problem) const {
    std::vector<Problem> problems;
    for (const OptionSpec& option : schedule().options) {
      const auto add = [&](const OptionValue& value) {
        problems.push_back(problem);
        problems.back().options[option.name] = value;
        if (!option.needs.empty()) problems.back().options[option.needs] = true;
        // The one option that is part of the shape.
        if (option.name == "splits")
          problems.back().shape.splits = static_cast<int>(std::get<long>(value));
      };
      if (option.type == OptionSpec::Type::kFlag) add(true);
      if (option.type != OptionSpec::Type::kInteger) continue;
      const auto least = static_cast<long>(option.minimum);
      const long p = problem.shape.devices;
      const long m = problem.shape.microbatches;
      for (const long value : std::set<long>{least, p - 1, p, p + 1, m, m + 1}) {
        if (value >= least && static_cast<double>(value) <= option.maximum) add(value);
      }
    }
    return problems;
  }

  // False when the schedule refuses, which it must do with a reason and a way out.
  bool accepts(const Problem& problem) const {
    const auto refusal = schedule().refusal(problem);
    if (!refusal) return true;
    EXPECT_FALSE(refusal->reason.empty());
    EXPECT_FALSE(refusal->nearest == problem.shape) << refusal->reason;
    Problem other = make(schedule(), refusal->nearest, kEqualTimes);
    other.options = problem.options;
    const auto again = schedule().refusal(other);
    EXPECT_FALSE(again.has_value()) << "nearest: " << describe(other) << "; " << again->reason;
    return false;
  }

  void expect_claims(const Problem& problem, const Evaluation& result) const {
    const BubbleClaim& bubble = schedule().claims.bubble;
    if (bubble.holds(problem)) {
      const Seconds found = result.cost - result.work;
      const Seconds claimed = bubble.bubble(problem);
      EXPECT_NEAR(found.value(), claimed.value(), 1e-9 * result.cost.value())
          << fmt::format("{} has a bubble of {} and claims {}: {}", schedule().name, human(found),
                         human(claimed), to_text(bubble));
    }
    const PeakClaim& peak = schedule().claims.peak;
    if (!peak.holds(problem)) return;
    for (int device = 0; device < problem.shape.devices; ++device) {
      const DeviceEvaluation& of = result.devices[device];
      EXPECT_EQ(of.peak_in_flight, peak.in_flight(problem, device))
          << fmt::format("{} holds {} on device {} and claims {}: {}", schedule().name,
                         of.peak_in_flight, device, peak.in_flight(problem, device), to_text(peak));
      // Every microbatch holds one byte per stage until its W has run.
      if (schedule().offloads()) {
        EXPECT_LE(of.peak_activation.value(), of.peak_in_flight);
      } else {
        EXPECT_EQ(of.peak_activation.value(), of.peak_in_flight);
      }
    }
  }

  void expect_all(const Problem& problem) const {
    SCOPED_TRACE(describe(problem));
    if (!accepts(problem)) return;
    // ComeFromAPlanThatCanBeExecutedAndIsTheSameEveryTime plans the problems without claims.
    const auto& [bubble, peak] = schedule().claims;
    if (!bubble.holds(problem) && !peak.holds(problem)) return;
    expect_claims(problem, evaluate(schedule().plan(problem), problem));
  }

  // Expects the claim to cover the grid that every schedule has to cover.
  template <class Claim>
  void expect_coverage(const Claim& claim) const {
    if (!claim.is_made()) return;
    int covered = 0;
    int left_out = 0;
    for (const Costs& costs : {kEqualTimes, kUnequalTimes}) {
      for (int p = 2; p <= 16; ++p) {
        for (const int m : {p, 2 * p, 4 * p}) {
          const Problem problem = make(schedule(), {p, schedule().default_chunks, m, 1}, costs);
          const bool holds = !schedule().refusal(problem) && claim.holds(problem);
          ++(holds ? covered : left_out);
        }
      }
    }
    EXPECT_GT(covered, 0) << "a claim that never holds: " << claim.formula;
    EXPECT_EQ(left_out > 0, !claim.gap.empty())
        << claim.formula << " leaves out " << left_out << " points of the grid; its gap says '"
        << claim.gap << "'";
  }
};

class ClaimsOfSchedulesWithOptions : public Claims {};

TEST_P(Claims, HoldOnEveryShapeAndSetOfTimesInTheirDomain) {
  for (const Costs& costs : kCosts) {
    SCOPED_TRACE(costs.name);
    each_shape(costs, [this](const Problem& problem) { expect_all(problem); });
  }
}

TEST_P(ClaimsOfSchedulesWithOptions, HoldUnderEveryOption) {
  for (const Costs& costs : {kUnequalTimes, kCosts[9]}) {
    SCOPED_TRACE(costs.name);
    each_shape(costs, [this](const Problem& problem) {
      for (const Problem& each : with_options(problem)) expect_all(each);
    });
  }
}

class ClaimsOfSchedulesWithALimit : public Claims {};

TEST_P(ClaimsOfSchedulesWithALimit, HoldWithinIt) {
  int planned = 0;
  each_shape_of_few_sizes(kUnequalTimes, [&](Problem problem) {
    for (StageCost& cost : problem.stages) cost.weight_stash = 0.4 * cost.activation;
    const Bytes one = problem.device_activation();
    for (const double share : {0.1, 0.5, 1.0, 1.6}) {
      SCOPED_TRACE(fmt::format("{}, limit {} p", describe(problem), share));
      problem.activation_limit = share * problem.shape.devices * one;
      if (const auto refusal = schedule().refusal(problem)) {
        EXPECT_FALSE(refusal->reason.empty());
        EXPECT_LT(share, 1.6) << "1F1B's memory twice over must do: " << refusal->reason;
        continue;
      }
      ++planned;
      for (const DeviceEvaluation& device : evaluate(schedule().plan(problem), problem).devices) {
        EXPECT_LE(device.peak_activation.value(), problem.activation_limit->value() * (1 + 1e-12));
      }
    }
  });
  EXPECT_GT(planned, 0);
}

TEST_P(ClaimsOfSchedulesWithALimit, HoldUnderEveryLimit) {
  for (const Costs& costs : kCosts) {
    SCOPED_TRACE(costs.name);
    each_shape(costs, [this](Problem problem) {
      for (const double share : {0.5, 1.0, 1.5, 2.0, 3.0}) {
        problem.activation_limit = share * problem.shape.devices * problem.device_activation();
        SCOPED_TRACE(fmt::format("{}, limit {} p", describe(problem), share));
        if (schedule().refusal(problem)) continue;
        const auto& of = schedule().claims;
        if (!of.bubble.holds(problem) && !of.peak.holds(problem)) continue;
        expect_claims(problem, evaluate(schedule().plan(problem), problem));
      }
    });
  }
}

TEST_P(Claims, CoverTheGridOrSayWhyNot) {
  expect_coverage(schedule().claims.bubble);
  expect_coverage(schedule().claims.peak);
}

TEST_P(Claims, ComeFromAPlanThatCanBeExecutedAndIsTheSameEveryTime) {
  const auto check = [this](const Problem& problem) {
    if (schedule().refusal(problem)) return;
    SCOPED_TRACE(describe(problem));
    try {
      const Program program = schedule().plan(problem);
      check_executable(program);
      if (problem.shape.devices > 8) return;  // a plan more of each costs seconds
      EXPECT_TRUE(same(program, schedule().plan(problem))) << "two plans of it differ";
    } catch (const std::exception& error) {
      ADD_FAILURE() << schedule().name << ": " << error.what();
    }
  };
  // With a limit, more plans are held to it.
  schedule().memory_limit ? each_shape_of_few_sizes(kUnequalTimes, check)
                          : each_shape(kUnequalTimes, check);
}

TEST_P(Claims, AreNotMadeForNumbersOfChunksThatAreRefused) {
  for (const int v : {schedule().min_chunks - 1, schedule().max_chunks + 1}) {
    if (v < 1) continue;
    EXPECT_FALSE(accepts(make(schedule(), {4, v, 8, 1}, kEqualTimes))) << v << " chunks";
  }
}

std::vector<const Schedule*> schedules_that(bool (*fits)(const Schedule*)) {
  std::vector<const Schedule*> found;
  std::ranges::copy_if(schedules(), std::back_inserter(found), fits);
  return found;
}
std::vector<const Schedule*> with_options() {
  return schedules_that([](const Schedule* schedule) { return !schedule->options.empty(); });
}
std::vector<const Schedule*> with_a_limit() {
  return schedules_that([](const Schedule* schedule) { return schedule->memory_limit; });
}

std::string name_of(const ::testing::TestParamInfo<const Schedule*>& info) {
  std::string name = title_of(*info.param);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Schedules, Claims, ::testing::ValuesIn(schedules()), name_of);
INSTANTIATE_TEST_SUITE_P(Schedules, ClaimsOfSchedulesWithOptions,
                         ::testing::ValuesIn(with_options()), name_of);
INSTANTIATE_TEST_SUITE_P(Schedules, ClaimsOfSchedulesWithALimit,
                         ::testing::ValuesIn(with_a_limit()), name_of);
// A house may hold no schedule of a kind; that is no fault of the suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ClaimsOfSchedulesWithALimit);

}  // namespace

// How gtest names a parameter in its messages.
void PrintTo(const Schedule* schedule, std::ostream* out) { *out << schedule->name; }

}  // namespace pipesim::claims_test
