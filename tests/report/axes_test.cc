// How much each axis of a sweep matters, as its page computes it (sim/report/html/page/axes.js).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/app/command.h"

namespace pipesim::axes_test {
namespace {

using nlohmann::json;

class PageAxes : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (shell("command -v node").code != 0) {
      GTEST_SKIP() << "no node on this machine; tools/install_dependencies full installs it";
    }
    const std::string source = PIPESIM_SOURCE_DIR;
    const testing::Outcome ran = shell("node '" + source + "/tests/report/axes_cases.js' '" +
                                       source + "/sim/report/html/page/axes.js'");
    ASSERT_EQ(ran.code, 0) << ran.output;
    found_ = json::parse(ran.output);
  }

  json found_;
};

TEST_F(PageAxes, ExplainTheVarianceOfTheirLevelsMeans) {
  // 0 1 10 11: means 5 and 6 by one axis, 0.5 and 10.5 by the other; variances 0.25, 25 of 25.25.
  EXPECT_NEAR(found_["additive"][0], 1.0 / 101, 1e-15);
  EXPECT_NEAR(found_["additive"][1], 100.0 / 101, 1e-15);
  EXPECT_EQ(found_["together"], json({0, 0}));
  EXPECT_NEAR(found_["uneven"], 18.75 / 20.75, 1e-15);
  EXPECT_EQ(found_["gaps"], found_["uneven"]);
  EXPECT_EQ(found_["alone"], 1);
  EXPECT_EQ(found_["still"], json({nullptr, nullptr, nullptr}));
}

TEST_F(PageAxes, HaveLevelsInOrderAndDrawnNumbersTogether) {
  EXPECT_EQ(found_["units"]["names"], json({"1.5 ms", "2 ms", "10 ms"}));
  EXPECT_EQ(found_["units"]["of"], json({2, 1, 0, 2, -1}));
  EXPECT_EQ(found_["mixed"]["names"], json({"10 ms", "2 s", "zb-h1", "1f1b"}));
  const json& names = found_["many"]["names"];
  ASSERT_EQ(names.size(), 12U);
  EXPECT_EQ(names.front(), "1 to 2");
  EXPECT_EQ(names.back(), "23 to 24");
  EXPECT_EQ(found_["noise"], 0);
}

}  // namespace
}  // namespace pipesim::axes_test
