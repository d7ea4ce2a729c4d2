// TeraPipe's slices, of unequal lengths as the authors' dynamic programme chooses them, take as
// long as their latency model predicts (data/unequal/terapipe_slices.json): it leaves out
// transfers.
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/best_slices.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::terapipe_test {
namespace {

// A third of its seconds forward, two thirds backward.
UnitKind slice_of(const Problem& problem, double seconds) {
  UnitKind kind{1, problem.stages};
  for (StageCost& cost : kind.stages) {
    cost.forward = Seconds(seconds / 3);
    cost.backward_input = cost.backward_weight = Seconds(seconds / 3);
  }
  return kind;
}

Problem sliced(const nlohmann::json& instance) {
  const auto& microbatches = instance.at("batch_and_slices");
  Problem problem =
      testing::make_problem({instance.at("p").get<int>(), 1, static_cast<int>(microbatches.size()),
                             static_cast<int>(microbatches[0][1].size())});
  std::vector<UnitKind> kinds;
  std::vector<std::uint32_t> of_unit;
  for (const auto& microbatch : microbatches) {
    double before = 0;
    for (const double length : microbatch[1]) {
      const double attention = length * before + length * length / 2;
      const double work =
          instance.at("l").get<double>() * length + instance.at("c").get<double>() * attention;
      of_unit.push_back(static_cast<std::uint32_t>(kinds.size()));
      kinds.push_back(
          slice_of(problem, instance.at("a").get<double>() + microbatch[0].get<double>() * work));
      before += length;
    }
  }
  set_kinds(problem, std::move(kinds), std::move(of_unit));
  return problem;
}

TEST(GoldenTeraPipe, TakesAsLongAsItsLatencyModelPredicts) {
  nlohmann::json data;
  std::ifstream(PIPESIM_SOURCE_DIR "/tests/golden/data/unequal/terapipe_slices.json") >> data;
  const Schedule& terapipe = *find_schedule("terapipe");
  ASSERT_EQ(data.at("instances").size(), 3U);
  for (const auto& instance : data.at("instances")) {
    const Problem problem = sliced(instance);
    const Evaluation result = evaluate(terapipe.plan(problem), problem);
    EXPECT_NEAR(result.makespan.value(), instance.at("seconds").get<double>(), 1e-9) << instance;
    ASSERT_TRUE(terapipe.claims.bubble.holds(problem)) << instance;
    EXPECT_NEAR(terapipe.claims.bubble.bubble(problem).value(), (result.cost - result.work).value(),
                1e-9)
        << instance;
  }
}

TEST(GoldenTeraPipe, ChoosesSlicesAsGood) {
  nlohmann::json data;
  std::ifstream(PIPESIM_SOURCE_DIR "/tests/golden/data/unequal/terapipe_slices.json") >> data;
  for (const auto& instance : data.at("instances")) {
    const auto& microbatches = instance.at("batch_and_slices");
    const auto theirs = microbatches[0][1].get<std::vector<long>>();
    const int units = std::accumulate(theirs.begin(), theirs.end(), 0);
    const auto number = [&instance](const char* name) { return instance.at(name).get<double>(); };
    const auto time = [&](int begin, int length) {
      const double attention = 1.0 * length * begin + 0.5 * length * length;
      const double one = number("a") + number("l") * length + number("c") * attention;
      return SliceTime{Seconds(one), Seconds((number("p") - 1) * one)};
    };
    const int count = static_cast<int>(microbatches.size());
    std::vector<SliceTime> slices;
    int begin = 0;
    const auto plans = best_slices(units, count, 1, time);
    for (const long length : plans.front()) {
      slices.push_back(time(begin, static_cast<int>(length)));
      begin += static_cast<int>(length);
    }
    EXPECT_EQ(begin, units);
    EXPECT_NEAR(latency(slices, count).value(), number("seconds"), 1e-9) << instance;
  }
}

}  // namespace
}  // namespace pipesim::terapipe_test
