#include "sim/report/text/block.h"

#include <gtest/gtest.h>

#include "sim/read/description.h"
#include "tests/folder.h"
#include "tests/pipeline/problems.h"

namespace pipesim::block_test {
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

TEST(Block, HasTheRoundsOfRulesAsTheGuideShows) {
  const std::string guide =
      testing::read_file(PIPESIM_SOURCE_DIR "/docs/how-to/describe-a-schedule.md");
  const auto rounds = [](const std::string& name, const Shape& shape) {
    const auto described =
        read_description_file(PIPESIM_SOURCE_DIR "/schedules/descriptions/" + name, {});
    return rounds_text(
        *described->description,
        testing::make_problem(shape, described->schedule.place(shape.devices, shape.chunks)));
  };
  EXPECT_NE(guide.find("```\n" + rounds("1f1b-rules.yaml", {4, 1, 8, 1}) + "```"),
            std::string::npos)
      << rounds("1f1b-rules.yaml", {4, 1, 8, 1});
  EXPECT_EQ(rounds("zb-h1-rules.yaml", {2, 1, 4, 1}),
            "device  in flight  rounds\n"
            "0               2  F x1, (F B W) x3, (B W) x1\n"
            "1               2  (F B) x1, (F B W) x3, W x1\n");
}

TEST(Block, MarksPairs) {
  const std::string text = drawn("1f1b-pairs.yaml", {2, 1, 5, 1}, 120);
  EXPECT_EQ(text.substr(0, text.find("device ")),
            "0 |f.f.F.&&&&XXxxxx|\n"
            "1 |..f.&&FFXX&&xx|\n"
            "microbatch 2 in capitals; & an F and a backward as one block\n"
            "period: 2 slots\n");
}

TEST(Block, ShowsWeightsInFreeSlotsAndLeavesOutWhatIsTooFar) {
  const std::string text = drawn("v-min.yaml", {2, 2, 4, 1}, 20);
  EXPECT_NE(text.find("slots beyond 20 are left out"), std::string::npos) << text;
  EXPECT_NE(text.find("W"), std::string::npos) << text;
  EXPECT_NE(text.find("tightened ramps hold at most 4 chunks on any device"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace pipesim::block_test
