#include "models/layout.h"

#include <gtest/gtest.h>
#include <numeric>

#include "sim/core/error.h"
#include "tests/models/shapes.h"

namespace pipesim::layout_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;

std::vector<int> layers(const Layout& layout) {
  std::vector<int> numbers;
  for (const StageLayers& stage : layout.stages) numbers.push_back(stage.layers);
  return numbers;
}

template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

const Transformer kModel = gpt(46, 5120, 40);

TEST(Layout, SplitsEvenlyWithTheEndsOutside) {
  const Layout layout = even_layout(gpt(8, 64, 4), Placement::looped(2, 2), {});
  EXPECT_EQ(layers(layout), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_TRUE(layout.stages.front().embedding);
  EXPECT_TRUE(layout.stages.back().output);
  EXPECT_FALSE(layout.stages.front().output);
  EXPECT_EQ(layout.stages[2].first, 4);
}

TEST(Layout, CountsTheEndsAsLayersWhereAsked) {
  const EvenSplit ends{.count_embedding = true, .count_loss = true};
  const Layout layout = even_layout(kModel, Placement::looped(16, 1), ends);
  EXPECT_EQ(layout.stages.front().layers, 2);
  EXPECT_EQ(layout.stages[7].layers, 3);
  EXPECT_EQ(layout.stages.back().layers, 2);
  // With as many stages as layers and ends, the ends are alone.
  const Layout fine = even_layout(kModel, Placement::vee(24), ends);
  EXPECT_EQ(fine.stages.front().layers, 0);
  EXPECT_EQ(fine.stages[1].layers, 1);
  EXPECT_EQ(fine.stages.back().layers, 0);
}

TEST(Layout, GivesTheFirstAndLastDeviceTheirOwnNumbers) {
  const EvenSplit split{.first_device = 4, .last_device = 2};
  EXPECT_EQ(layers(even_layout(gpt(22, 64, 4), Placement::looped(4, 2), split)),
            (std::vector<int>{2, 4, 4, 1, 2, 4, 4, 1}));
  // In a V device 0 holds both ends.
  EXPECT_EQ(layers(even_layout(gpt(22, 64, 4), Placement::vee(4), split)),
            (std::vector<int>{2, 4, 4, 1, 1, 4, 4, 2}));
}

TEST(Layout, SaysWhyASplitIsRefused) {
  const Placement eight = Placement::looped(8, 1);
  EXPECT_NE(refusal([&] { even_layout(kModel, eight, {}); }).find("46 layers of gpt do not divide"),
            std::string::npos);
  EXPECT_NE(refusal([&] { even_layout(kModel, eight, {.first_device = 47}); }).find("has 46"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              even_layout(kModel, eight, {.first_device = 4, .count_loss = true});
            }).find("either"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              even_layout(kModel, Placement::bidirectional(8), {.first_device = 4});
            }).find("two directions"),
            std::string::npos);
  const std::vector<int> list{20, 20};
  EXPECT_NE(refusal([&] { listed_layout(kModel, list); }).find("list 40 layers"),
            std::string::npos);
}

TEST(Layout, CountsLayersByKind) {
  const Transformer model = deepseek_v3();  // three dense layers, then experts
  const std::vector<int> list{2, 20, 20, 19};
  const Layout layout = listed_layout(model, list);
  EXPECT_EQ(count_layers(model, layout.stages[0])[LayerKind::kDense], 2);
  EXPECT_EQ(count_layers(model, layout.stages[0])[LayerKind::kMoe], 0);
  EXPECT_EQ(count_layers(model, layout.stages[1])[LayerKind::kDense], 1);
  EXPECT_EQ(count_layers(model, layout.stages[1])[LayerKind::kMoe], 19);
  EXPECT_EQ(count_layers(model, layout.stages[3])[LayerKind::kMtp], 1);
  EXPECT_EQ(count_layers(model, layout.stages[3])[LayerKind::kOutput], 1);
}

TEST(MegatronLayout, ReadsTheFrameworksWriting) {
  const Transformer model = deepseek_v3();
  const Layout layout = parse_megatron_layout(model, "Et*3|(tt|)*29,m|L");
  ASSERT_EQ(layout.stages.size(), 32U);
  EXPECT_EQ(layout.stages[0].layers, 3);
  EXPECT_TRUE(layout.stages[0].embedding);
  EXPECT_EQ(layout.stages[29].layers, 2);
  EXPECT_EQ(layout.stages[30], (StageLayers{.first = 61, .mtp = 1}));
  EXPECT_EQ(layout.stages[31], (StageLayers{.first = 61, .output = true}));
}

TEST(MegatronLayout, ReadsRepetitionsAcrossStages) {
  const Transformer model = gpt(10, 64, 4);
  EXPECT_EQ(layers(parse_megatron_layout(model, "E(tt|t)*3,tL")), (std::vector<int>{2, 3, 3, 2}));
  EXPECT_EQ(layers(parse_megatron_layout(model, "Et*5|*3t*5L")), (std::vector<int>{5, 0, 0, 5}));
}

TEST(MegatronLayout, ReadsBackWhatItWrites) {
  const Transformer model = deepseek_v3();
  for (const char* text : {"Et*3|(tt|)*29,m|L", "E|t*61|(|)*2mL", "Et*61mL", "Et*30|t*31|mL"}) {
    const Layout layout = parse_megatron_layout(model, text);
    EXPECT_EQ(parse_megatron_layout(model, to_megatron_layout(layout)), layout) << text;
  }
  EXPECT_EQ(to_megatron_layout(parse_megatron_layout(model, "Ettt|(tt|)*29m|L")),
            "Ettt|(tt|)*29m|L");
}

TEST(MegatronLayout, SaysWhatIsWrong) {
  const Transformer model = gpt(4, 64, 4);
  const auto fault = [&](const char* text) {
    return refusal([&] { parse_megatron_layout(model, text); });
  };
  EXPECT_NE(fault("Ett|txL").find("'x' is none of E"), std::string::npos);
  EXPECT_NE(fault("Ett|tL").find("3 layers (t), but gpt has 4"), std::string::npos);
  EXPECT_NE(fault("tt|ttL").find("must stand first"), std::string::npos);
  EXPECT_NE(fault("Ett|EttL").find("must stand first"), std::string::npos);
  EXPECT_NE(fault("EttL|tt").find("must stand last"), std::string::npos);
  EXPECT_NE(fault("Ett|ttL|").find("must stand last"), std::string::npos);
  EXPECT_NE(fault("E(tt|ttL").find("without its ')'"), std::string::npos);
  EXPECT_NE(fault("E(tt|)L").find("needs '*'"), std::string::npos);
  EXPECT_NE(fault("Et*tL").find("number of repetitions"), std::string::npos);
  EXPECT_NE(fault("E(t*60000)*60000L").find("too long"), std::string::npos);
  EXPECT_NE(fault("Ett|ttmL").find("1 MTP modules"), std::string::npos);
}

double slowest(const Transformer& model, const Layout& layout, const LayerSeconds& seconds) {
  double most = 0;
  for (const StageLayers& stage : layout.stages) {
    most = std::max(most, stage_seconds(model, stage, seconds).value());
  }
  return most;
}

// Every split of the parts embedding, layers, output.
double least_by_trying(const Transformer& model, int stages, const LayerSeconds& seconds,
                       const StageFits& fits, Layout& layout, int next) {
  if (std::cmp_equal(layout.stages.size(), stages - 1)) {
    layout.stages.push_back({.first = next,
                             .layers = model.num_layers - next,
                             .embedding = stages == 1,
                             .output = true});
    const bool fit = !fits || fits(stages - 1, layout.stages.back());
    const double seconds_of = fit ? slowest(model, layout, seconds) : 1e9;
    layout.stages.pop_back();
    return seconds_of;
  }
  double least = 1e9;
  for (int end = next; end <= model.num_layers; ++end) {
    const StageLayers stage{
        .first = next, .layers = end - next, .embedding = layout.stages.empty()};
    if (fits && !fits(static_cast<int>(layout.stages.size()), stage)) continue;
    layout.stages.push_back(stage);
    least = std::min(least, least_by_trying(model, stages, seconds, fits, layout, end));
    layout.stages.pop_back();
  }
  return least;
}

TEST(Balance, IsAsGoodAsTheBestOfAllSplits) {
  const Transformer model = gpt(11, 64, 4);
  const StageFits fits = [](int stage, const StageLayers& layers) {
    return layers.layers <= 2 + stage;  // earlier stages hold more microbatches
  };
  for (const double output : {0.0, 0.7, 2.5, 6.0}) {
    for (const double embedding : {0.1, 1.2}) {
      const LayerSeconds seconds{
          .embedding = Seconds(embedding), .dense = Seconds(1), .output = Seconds(output)};
      for (int stages = 1; stages <= 4; ++stages) {
        Layout layout;
        EXPECT_DOUBLE_EQ(slowest(model, balance(model, stages, seconds), seconds),
                         least_by_trying(model, stages, seconds, {}, layout, 0));
        if (stages < 4) continue;
        EXPECT_DOUBLE_EQ(slowest(model, balance(model, stages, seconds, fits), seconds),
                         least_by_trying(model, stages, seconds, fits, layout, 0));
      }
    }
  }
}

TEST(Balance, IsEvenWhereTheSlowestStageLeavesAChoice) {
  const Transformer model = gpt(9, 64, 4);
  // The output is the slowest stage by itself; the others share the layers.
  const LayerSeconds seconds{.dense = Seconds(1), .output = Seconds(4)};
  EXPECT_EQ(layers(balance(model, 4, seconds)), (std::vector<int>{3, 3, 3, 0}));
}

TEST(Balance, SaysWhenNothingFits) {
  const LayerSeconds seconds{.dense = Seconds(1)};
  EXPECT_NE(refusal([&] {
              balance(gpt(9, 64, 4), 3, seconds,
                      [](int, const StageLayers& stage) { return stage.layers < 3; });
            }).find("no split of gpt's layers over 3 stages fits"),
            std::string::npos);
}

TEST(Balance, KeepsMtpModulesTogetherAndCanBeWrittenForMegatron) {
  const Transformer model = deepseek_v3();
  const LayerSeconds seconds{.embedding = Seconds(0.1),
                             .dense = Seconds(0.8),
                             .moe = Seconds(1),
                             .mtp = Seconds(2),
                             .output = Seconds(1)};
  const Layout layout = balance(model, 16, seconds);
  int all = 0;
  int modules = 0;
  for (const StageLayers& stage : layout.stages) {
    all += stage.layers;
    modules += stage.mtp;
  }
  EXPECT_EQ(all, 61);
  EXPECT_EQ(modules, 1);
  EXPECT_DOUBLE_EQ(slowest(model, layout, seconds), 4);
  EXPECT_EQ(parse_megatron_layout(model, to_megatron_layout(layout)), layout);
}

TEST(Layout, StagesHoldTheSameKindsWhereTheirLayersDo) {
  Transformer model = deepseek_v3();  // three dense layers first
  const auto same = [&](const StageLayers& a, const StageLayers& b) {
    return same_kinds(model, a, b) && same_kinds(model, b, a);
  };
  EXPECT_TRUE(same({.first = 3, .layers = 4}, {.first = 20, .layers = 4}));
  EXPECT_TRUE(same({.first = 0, .layers = 2}, {.first = 1, .layers = 2}));
  EXPECT_FALSE(same({.first = 2, .layers = 4}, {.first = 3, .layers = 4}));
  EXPECT_FALSE(same({.first = 3, .layers = 4}, {.first = 3, .layers = 5}));
  EXPECT_FALSE(same({.first = 3, .layers = 4}, {.first = 3, .layers = 4, .mtp = 1}));
  EXPECT_FALSE(same({.first = 3, .layers = 4}, {.first = 3, .layers = 4, .output = true}));
  EXPECT_FALSE(same({.first = 0, .layers = 2}, {.first = 0, .layers = 2, .embedding = true}));
  // Stages with the same kinds in another order differ, since pairs of passes do.
  model.experts.reset();
  model.layer_pattern = "WG";
  EXPECT_TRUE(same({.first = 2, .layers = 2}, {.first = 4, .layers = 2}));
  EXPECT_FALSE(same({.first = 2, .layers = 2}, {.first = 3, .layers = 2}));
}

TEST(Layout, DevicesHoldTheSameKindsWhereAllTheirStagesDo) {
  const Transformer model = gpt(16, 64, 4);
  const Placement place = Placement::looped(4, 2);
  const Layout layout = even_layout(model, place, {});
  EXPECT_TRUE(same_kinds(model, layout, place, 1, 2));
  EXPECT_FALSE(same_kinds(model, layout, place, 0, 1));  // the embedding
  EXPECT_FALSE(same_kinds(model, layout, place, 2, 3));  // the output, on the second chunk
}

}  // namespace
}  // namespace pipesim::layout_test
