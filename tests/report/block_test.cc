#include "sim/report/text/block.h"

#include <gtest/gtest.h>

#include "sim/read/description.h"
#include "tests/folder.h"
#include "tests/pipeline/problems.h"

namespace pipesim {
namespace {

std::string drawn(const std::string& name, const Shape& shape, int columns) {
  const auto described =
      read_description_file(PIPESIM_SOURCE_DIR "/schedules/descriptions/" + name, {});
  const Problem problem = testing::make_problem(
      shape, described->schedule.place(shape.devices, shape.chunks), {1, 1, 1, 0});
  return draw_block(*described->description, problem, columns);
}

TEST(Block, IsDrawnAsTheGuideShows) {
  const std::string guide =
      testing::read_file(PIPESIM_SOURCE_DIR "/docs/how-to/describe-a-schedule.md");
  EXPECT_NE(guide.find(drawn("1f1b.yaml", {4, 1, 8, 1}, 120)), std::string::npos);
}

TEST(Block, ShowsWeightsInFreeSlotsAndLeavesOutWhatIsTooFar) {
  const std::string text = drawn("v-min.yaml", {2, 2, 4, 1}, 20);
  EXPECT_NE(text.find("slots beyond 20 are left out"), std::string::npos) << text;
  EXPECT_NE(text.find("W"), std::string::npos) << text;
  EXPECT_NE(text.find("tightened ramps hold at most 4 chunks on any device"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace pipesim
