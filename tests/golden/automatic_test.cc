// Automatic schedules against the authors' public generators (data/automatic, see automatic.h): on
// every instance the same cost or less, in the same memory or less.
#include "tests/golden/automatic.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <vector>

#include "sim/execution/evaluate.h"

namespace pipesim::automatic_test {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> data_files() { return golden::data_files("automatic"); }

bool same_order(const Program& a, const Program& b) {
  for (int device = 0; device < a.shape().devices; ++device) {
    if (!std::ranges::equal(a.passes(device), b.passes(device))) return false;
  }
  return true;
}

// How our orders compare with the reference's.
struct Count {
  int same = 0, equal = 0, better = 0, worse = 0;
};

class AutomaticGolden : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    data_ = golden::read_json(GetParam());
    const auto name = data_.at("schedule").get<std::string>();
    schedule_ = find_schedule(name);
    ASSERT_NE(schedule_, nullptr) << "no schedule " << name;
    ASSERT_FALSE(data_.at("instances").empty());
  }

  void compare(const json& instance, Count& count) const {
    const Problem problem = golden::read_problem(instance, *schedule_);
    const auto refusal = schedule_->refusal(problem);
    ASSERT_FALSE(refusal.has_value()) << refusal->reason;
    const Program program = schedule_->plan(problem);
    const Program reference = golden::read_order(instance.at("order"), problem);
    const Evaluation ours = evaluate(program, problem);
    const Evaluation theirs = evaluate(reference, problem);
    EXPECT_LE(ours.cost, theirs.cost);
    EXPECT_LE(ours.peak_activation(), theirs.peak_activation());
    EXPECT_LE(ours.peak_activation(), problem.activation_limit.value_or(ours.peak_activation()));
    const bool worse = ours.cost > theirs.cost || ours.peak_activation() > theirs.peak_activation();
    const bool better =
        ours.cost < theirs.cost || ours.peak_activation() < theirs.peak_activation();
    count.worse += worse ? 1 : 0;
    count.better += !worse && better ? 1 : 0;
    count.same += same_order(program, reference) ? 1 : 0;
    count.equal += worse || better || same_order(program, reference) ? 0 : 1;
  }

  // Calls `visit` with the problem under the instance's other times, and with what is said of it.
  template <class Visit>
  void each_other_times(const json& instance, Visit visit) const {
    for (const json& times : instance.at("alt_eval")) {
      SCOPED_TRACE("times " + times.dump());
      Problem problem = golden::read_problem(instance, *schedule_);
      golden::set_times(problem, times);
      visit(problem, times);
    }
  }

  json data_;
  const Schedule* schedule_ = nullptr;
};

TEST_P(AutomaticGolden, IsMatchedInCostAndMemoryOrBeaten) {
  Count count;
  for (const json& instance : data_.at("instances")) {
    SCOPED_TRACE(instance.at("id"));
    compare(instance, count);
  }
  std::puts(fmt::format("{}: of {} instances {} have the reference's order, {} another of equal "
                        "cost and peak, {} are better, {} worse",
                        schedule_->name, data_.at("instances").size(), count.same, count.equal,
                        count.better, count.worse)
                .c_str());
}

class AutomaticGoldenAtAnyTimes : public AutomaticGolden {};

// An order that was made without regard to times has to stand under any.
TEST_P(AutomaticGoldenAtAnyTimes, IsMatchedAtOtherTimes) {
  for (const json& instance : data_.at("instances")) {
    SCOPED_TRACE(instance.at("id"));
    each_other_times(instance, [&](const Problem& problem, const json& wanted) {
      const Evaluation ours = evaluate(schedule_->plan(problem), problem);
      EXPECT_LE(ours.cost.value(), wanted.at("cost").get<double>());
    });
  }
}

TEST_P(AutomaticGolden, EvaluatesToWhatIsSaidOfIt) {
  const auto expect_times = [](const Evaluation& result, const json& wanted) {
    EXPECT_EQ(result.cost.value(), wanted.at("cost").get<double>());
    EXPECT_EQ(result.makespan.value(), wanted.at("makespan").get<double>());
  };
  for (const json& instance : data_.at("instances")) {
    SCOPED_TRACE(instance.at("id"));
    Problem problem = golden::read_problem(instance, *schedule_);
    const Program reference = golden::read_order(instance.at("order"), problem);
    expect_times(evaluate(reference, problem), instance);
    each_other_times(instance, [&](const Problem& other, const json& wanted) {
      expect_times(evaluate(reference, other), wanted);
    });
    for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = Bytes(1);
    std::vector<double> peaks;
    for (const DeviceEvaluation& device : evaluate(reference, problem).devices) {
      peaks.push_back(device.peak_activation.value());
    }
    EXPECT_EQ(peaks, instance.at("peak_chunks").get<std::vector<double>>());
  }
}

std::vector<std::filesystem::path> files_at_any_times() {
  auto files = data_files();
  std::erase_if(files, [](const auto& file) {
    return !golden::read_json(file).at("same_order_at_all_times").template get<bool>();
  });
  return files;
}

std::string name_of(const ::testing::TestParamInfo<std::filesystem::path>& file) {
  return file.param.stem().string();
}

INSTANTIATE_TEST_SUITE_P(Data, AutomaticGolden, ::testing::ValuesIn(data_files()), name_of);
INSTANTIATE_TEST_SUITE_P(Data, AutomaticGoldenAtAnyTimes, ::testing::ValuesIn(files_at_any_times()),
                         name_of);

}  // namespace
}  // namespace pipesim::automatic_test
