// Families of measured layouts: how well the simulator's order decides.
#include "validate/papers/layouts/layouts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/folder.h"

namespace pipesim {
namespace {

MeasuredLayout layout(double measured, double simulated, const std::string& family = "a") {
  MeasuredLayout each;
  each.family = family;
  each.measured = measured;
  each.simulated = simulated;
  each.scenario = std::to_string(measured);
  return each;
}

MeasuredLayout failed(MemoryFit fits) {
  MeasuredLayout each = layout(1, 1);
  each.measured.reset();
  each.fits = fits;
  return each;
}

TEST(Layouts, TauCountsPairsInTheSameOrder) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {1, 3, 2}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {5, 5, 5}), 0);
  // One tie of three pairs: 2 / sqrt(3 x 2).
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {5, 5, 6}), 2 / std::sqrt(6.0));
}

TEST(Layouts, RegretIsTheMeasuredTimeOfOurFavouriteOverTheBest) {
  const auto families = families_of({layout(2.0, 1), layout(1.6, 2), layout(1.5, 3), layout(1.0, 4),
                                     failed(MemoryFit::kYes), failed(MemoryFit::kNo)});
  ASSERT_EQ(families.size(), 1);
  EXPECT_DOUBLE_EQ(families[0].regret, 1.0);
  EXPECT_DOUBLE_EQ(families[0].regret_of_three, 0.5);
  EXPECT_DOUBLE_EQ(families[0].tau, -1);
  EXPECT_EQ(families[0].failed.size(), 2);
  EXPECT_EQ(families[0].failed_said_to_fit, 1);
}

MeasuredLayout of_sizes(const std::string& sizes, double measured) {
  MeasuredLayout each = layout(measured, 1);
  each.sizes = sizes;
  return each;
}

TEST(Layouts, TwinsSayHowWellAMeasuredOrderRepeats) {
  const auto families = families_of({of_sizes("tp 1", 1), of_sizes("tp 1", 1.1),
                                     of_sizes("tp 2", 2), of_sizes("tp 2", 4), of_sizes("tp 4", 3),
                                     of_sizes("tp 4", 3.5), of_sizes("tp 8", 9)});
  ASSERT_EQ(families.size(), 1);
  EXPECT_EQ(families[0].twins, 3);
  EXPECT_DOUBLE_EQ(families[0].twins_tau, 1.0 / 3);
}

// The same layout on other numbers of GPUs.
MeasuredLayout scaled(const std::string& sizes, int gpus, double measured, double simulated) {
  MeasuredLayout each = layout(measured, simulated, std::to_string(gpus));
  each.scaled = sizes;
  each.gpus = gpus;
  return each;
}

TEST(Layouts, ThatAreSlowerThanOnHalfOfTheGpusAreUnsound) {
  const auto families =
      families_of({scaled("a", 8, 4, 1), scaled("b", 8, 5, 2), scaled("c", 8, 6, 3),
                   scaled("a", 16, 9, 1), scaled("b", 16, 2.5, 2), scaled("c", 16, 3, 3),
                   scaled("d", 16, 3.5, 4), scaled("a", 32, 9.5, 1), scaled("b", 32, 7, 2),
                   scaled("c", 32, 1.5, 3), scaled("e", 64, 99, 3)});
  ASSERT_EQ(families.size(), 3);
  EXPECT_EQ(families[0].compared, 0);
  EXPECT_EQ(families[1].compared, 3);
  EXPECT_EQ(families[1].unsound, 1);
  EXPECT_EQ(families[2].unsound, 2);
  EXPECT_FALSE(mostly_unsound(families[1]));
  EXPECT_TRUE(mostly_unsound(families[2]));
  EXPECT_GT(families[1].regret, 2);
  const auto sound = sound_families(families);
  ASSERT_EQ(sound.size(), 2);
  EXPECT_EQ(sound[1].gpus, 16);
  EXPECT_EQ(sound[1].layouts.size(), 3);
  EXPECT_DOUBLE_EQ(sound[1].regret, 0);
  EXPECT_DOUBLE_EQ(sound[1].tau, 1);
  const auto json = nlohmann::json::parse(layouts_json(families));
  EXPECT_EQ(json[1]["sound"]["layouts"], 3);
  EXPECT_EQ(json[1]["layouts"], 4);
  EXPECT_TRUE(json[2]["sound"].is_null());
  const std::string text = layouts_text(families);
  EXPECT_NE(text.find("3 layouts were measured slower than on half of the GPUs"), std::string::npos)
      << text;
  EXPECT_NE(text.find("on 32 GPUs (2 of 3)"), std::string::npos) << text;
}

TEST(Layouts, AFamilyHasThreeDifferentLayoutsThatRan) {
  EXPECT_TRUE(
      families_of({layout(1, 1), layout(2, 2), layout(2, 2), failed(MemoryFit::kYes)}).empty());
  EXPECT_EQ(families_of({layout(1, 1), layout(2, 2), layout(3, 2), layout(3, 3, "b")}).size(), 1);
}

constexpr const char* kSweep = R"(about: {what: a sweep}
shapes:
  1B: {layers: 16, hidden: 2048, heads: 16, ffn: 5632, tied: true}
ran:
- {id: a, model: 1B, gpus: 8, tp: 1, pp: 1, dp: 8, mbs: 1, gbs: 64, zero_stage: 1, step_s: 1.0}
- {id: b, model: 1B, gpus: 8, tp: 2, pp: 1, dp: 4, mbs: 1, gbs: 64, zero_stage: 1, step_s: 1.5}
- {id: c, model: 1B, gpus: 8, tp: 8, pp: 1, dp: 1, mbs: 1, gbs: 64, zero_stage: 0, step_s: 3.0}
failed:
- {id: d, model: 1B, gpus: 8, tp: 1, pp: 1, dp: 8, mbs: 8, gbs: 64, zero_stage: 0, status: crashed/oom}
)";

std::vector<MeasuredLayout> read(const std::string& text) {
  const auto file = testing::test_folder() / "sweep.yaml";
  testing::write_file(file, text);
  return measured_layouts(file.string(), {});
}

TEST(Layouts, AFileOfASweepIsSimulatedByItsRule) {
  const auto layouts = read(kSweep);
  ASSERT_EQ(layouts.size(), 4);
  EXPECT_EQ(layouts[1].words, "tp 2 pp 1 dp 4 mbs 1 zero 1");
  for (const MeasuredLayout& each : layouts) EXPECT_TRUE(each.simulated) << each.reason;
  EXPECT_NE(layouts[0].scenario.find("cluster: aws-p5"), std::string::npos);
  EXPECT_NE(layouts[0].scenario.find("untie_embeddings_and_output_weights: false"),
            std::string::npos);
  const auto families = families_of(layouts);
  ASSERT_EQ(families.size(), 1);
  EXPECT_DOUBLE_EQ(families[0].tau, 1);
  const auto json = nlohmann::json::parse(layouts_json(families));
  EXPECT_EQ(json[0]["model"], "1B");
  EXPECT_EQ(json[0]["gpus"], 8);
  EXPECT_EQ(json[0]["layouts"], 3);
  EXPECT_EQ(json[0]["regret"], 0);
  EXPECT_EQ(json[0]["failed"], 1);
}

TEST(Layouts, LayersStandWhereParametersSoFarExceedAStagesShare) {
  const std::string rest =
      "model: 1B, gpus: 8, tp: 1, dp: 1, mbs: 1, gbs: 8, zero_stage: 0, step_s: 1.0, pp: 8}\n";
  const auto layouts =
      read("shapes: {1B: {layers: 16, hidden: 2048, heads: 16, ffn: 5632}}\nran: [{id: a, " + rest +
           "]");
  // 16 layers of 51 million parameters and an output of 268 million: 2.66 layers a stage.
  EXPECT_NE(layouts[0].scenario.find("num_layers_per_stage: [3, 3, 2, 3, 3, 2, 0, 0]"),
            std::string::npos)
      << layouts[0].scenario;
  EXPECT_TRUE(layouts[0].simulated) << layouts[0].reason;
}

TEST(Layouts, ARowWithoutSecondsIsRefused) {
  EXPECT_THROW(read("ran:\n- {id: a, model: 1B, gpus: 8, tp: 1, pp: 1}\n"), InputError);
  EXPECT_THROW(read("runs: []\n"), InputError);
}

TEST(Layouts, ARowThatCannotBeSimulatedEndsNoOther) {
  const auto layouts =
      read("ran:\n- {id: a, model: Foo 9000B, gpus: 8, tp: 1, pp: 1, mbs: 1, gbs: 8, step_s: 1}\n");
  ASSERT_EQ(layouts.size(), 1);
  EXPECT_FALSE(layouts[0].simulated);
  EXPECT_EQ(layouts[0].reason, "'Foo 9000B' is no model we know");
}

}  // namespace
}  // namespace pipesim
