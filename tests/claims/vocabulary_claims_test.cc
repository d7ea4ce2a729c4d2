// Every schedule that has orders for a sharded vocabulary, over a grid of shapes and times, against
// what it claims of them.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::vocabulary_claims_test {
namespace {

using testing::Times;

struct Case {
  const Schedule* schedule;
  VocabularySupport support;
};

void PrintTo(const Case& of, std::ostream* out) {
  *out << of.schedule->name << " " << to_text(of.support.placement);
}

constexpr Times kEqualTimes{1, 1, 1, 0};
constexpr Times kUnequalTimes{10, 12, 8, 0};

// The vocabulary's passes and collectives take no time, or some.
enum class Vocabulary { kFree, kCosts };

Problem make(const Case& of, int p, int m, const Times& times, Vocabulary vocabulary,
             bool unequal_stages = false) {
  const int chunks = of.schedule->default_chunks;
  Problem problem = testing::make_problem({p, chunks, m, 1}, of.schedule->place(p, chunks), times);
  for (size_t vs = 0; unequal_stages && vs < problem.stages.size(); ++vs) {
    StageCost& cost = problem.stages[vs];
    cost.forward = (1 + static_cast<double>(vs * 7 % 5) / 4) * cost.forward;
    cost.backward_input += Seconds(static_cast<double>(vs % 3));
  }
  problem.vocabulary = of.support.placement;
  problem.vocabulary_costs.resize(p);
  if (vocabulary == Vocabulary::kFree) return problem;
  for (size_t d = 0; d < problem.vocabulary_costs.size(); ++d) {
    const double more = unequal_stages ? 1 + static_cast<double>(d % 3) : 1;
    problem.vocabulary_costs[d] = {Seconds(2 * more), Seconds(3), Seconds(1), Seconds(more),
                                   Bytes(1)};
  }
  for (size_t each = 0; each + 1 < kBarriers; ++each) problem.barriers[each] = Seconds(0.5);
  return problem;
}

class VocabularyClaims : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] const Claims& claims() const { return GetParam().support.claims; }

  // Calls `visit` with the problem of every shape of the grid.
  template <class Visit>
  void each(Visit visit) const {
    for (int p = 1; p <= 16; ++p) {
      for (const int m : std::set<int>{1, p - 1, p, p + 1, 2 * p, 4 * p}) {
        if (m == 0) continue;
        for (const Times& times :
             {kEqualTimes, kUnequalTimes, Times{4, 10, 8, 0}, Times{4, 8, 8, 0},
              Times{1, 20, 15, 0}, Times{8, 6, 2, 0}, Times{10, 4, 6, 1}, Times{2, 3, 7, 9}}) {
          for (const bool unequal : {false, true}) {
            for (const Vocabulary vocabulary : {Vocabulary::kFree, Vocabulary::kCosts}) {
              visit(make(GetParam(), p, m, times, vocabulary, unequal));
            }
          }
        }
      }
    }
  }

  template <class Claim>
  void expect_coverage(const Claim& claim) const {
    if (!claim.is_made()) return;
    int covered = 0;
    int left_out = 0;
    for (const Times& times : {kEqualTimes, kUnequalTimes}) {
      for (int p = 2; p <= 16; ++p) {
        for (const int m : {p, 2 * p, 4 * p}) {
          ++(claim.holds(make(GetParam(), p, m, times, Vocabulary::kFree)) ? covered : left_out);
        }
      }
    }
    EXPECT_GT(covered, 0) << "a claim that never holds: " << claim.formula;
    EXPECT_EQ(left_out > 0, !claim.gap.empty())
        << claim.formula << " leaves out " << left_out << " points of the grid; its gap says '"
        << claim.gap << "'";
  }
};

// Every shape has an order that can be executed, at any costs.
TEST_P(VocabularyClaims, HoldOnEveryShapeAndSetOfTimesInTheirDomain) {
  each([this](const Problem& problem) {
    const auto [p, v, m, n] = problem.shape;
    SCOPED_TRACE(fmt::format("p {} m {} F {}", p, m, problem.stage(0).forward.value()));
    ASSERT_FALSE(GetParam().schedule->refusal(problem).has_value());
    const Evaluation result = evaluate(GetParam().schedule->plan(problem), problem);
    if (claims().bubble.holds(problem)) {
      EXPECT_NEAR((result.cost - result.work).value(), claims().bubble.bubble(problem).value(),
                  1e-9 * result.cost.value())
          << "bubble " << claims().bubble.formula;
    }
    if (!claims().peak.holds(problem)) return;
    for (int device = 0; device < p; ++device) {
      EXPECT_EQ(result.devices[device].peak_in_flight, claims().peak.in_flight(problem, device))
          << "peak " << claims().peak.formula << ", device " << device;
    }
  });
}

TEST_P(VocabularyClaims, CoverTheGridOrSayWhyNot) {
  expect_coverage(claims().bubble);
  expect_coverage(claims().peak);
}

std::vector<Case> cases() {
  std::vector<Case> found;
  for (const Schedule* schedule : schedules()) {
    for (const VocabularySupport& support : schedule->vocabulary) {
      found.push_back({schedule, support});
    }
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Schedules, VocabularyClaims, ::testing::ValuesIn(cases()),
                         [](const auto& info) {
                           std::string name = fmt::format("{}_{}", info.param.schedule->name,
                                                          to_text(info.param.support.placement));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace pipesim::vocabulary_claims_test
