// Seq1F1B's order, pass by pass, as the authors' public code gives it (data/orders/seq_1f1b.json,
// data/unequal/seq_1f1b.json).
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/execution/walk.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::seq_1f1b_test {
namespace {

std::string written(const Program& program, int device) {
  const auto splits = static_cast<std::uint32_t>(program.shape().splits);
  std::string text;
  for (const Pass& pass : program.passes(device)) {
    text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", to_text(pass.kind),
                        pass.microbatch / splits, pass.microbatch % splits);
  }
  return text;
}

class GoldenSeq1F1B : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenSeq1F1B, HasTheOrderOfTheReference) {
  nlohmann::json data;
  std::ifstream(std::string(PIPESIM_SOURCE_DIR "/tests/golden/data/") + GetParam()) >> data;
  const Schedule* schedule = find_schedule(data.at("schedule").get<std::string>());
  ASSERT_NE(schedule, nullptr);
  ASSERT_FALSE(data.at("instances").empty());
  for (const auto& instance : data.at("instances")) {
    const Shape shape{instance.at("p").get<int>(), 1, instance.at("m").get<int>(),
                      instance.at("splits").get<int>()};
    const Program program = schedule->plan(testing::make_problem(shape));
    ASSERT_EQ(instance.at("order").size(), static_cast<size_t>(shape.devices));
    for (int device = 0; device < shape.devices; ++device) {
      EXPECT_EQ(written(program, device), instance.at("order").at(device).get<std::string>());
    }
    EXPECT_NO_THROW(check_executable(program));
  }
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenSeq1F1B,
                         ::testing::Values("orders/seq_1f1b.json", "unequal/seq_1f1b.json"));

// With one split it is 1F1B.
TEST(Seq1F1B, IsOneForwardOneBackwardWithoutSplits) {
  for (int p = 1; p <= 5; ++p) {
    for (const int m : {1, 2, 5, 11}) {
      const Problem problem = testing::make_problem({p, 1, m, 1});
      const Program split = find_schedule("seq-1f1b")->plan(problem);
      const Program plain = find_schedule("1f1b")->plan(problem);
      for (int d = 0; d < p; ++d) EXPECT_EQ(written(split, d), written(plain, d));
    }
  }
}

}  // namespace
}  // namespace pipesim::seq_1f1b_test
