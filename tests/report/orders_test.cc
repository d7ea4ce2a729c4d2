// Two orders side by side: where they part, sums that hold, drawings on one axis.
#include "sim/report/compare/orders.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::orders_test {
namespace {

Answer answer_of(const std::string& schedule, int microbatches = 8, const std::string& more = "") {
  const Case made = prepare_first(read_scenario(YamlSource("test", "schedule: " + schedule + R"(
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: )" + std::to_string(microbatches) + R"(}
cost: {kind: given, per: device, forward: [10 ms, 12 ms, 9 ms, 14 ms], backward_input: 12 ms,
       backward_weight: 8 ms, transfer: 0.4 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)" + more)));
  return {made, simulate(made)};
}

TEST(Orders, PartWhereTheFirstPassDiffers) {
  const Answer a = answer_of("1f1b");
  const Answer b = answer_of("zb-h1");
  const OrdersCompared compared = compare_orders(a.result, b.result);
  ASSERT_EQ(compared.parts.size(), 4U);
  for (int d = 0; d < 4; ++d) {
    const auto& part = compared.parts[static_cast<size_t>(d)];
    ASSERT_TRUE(part.has_value()) << d;
    // The warm-up is the same; then one has both gradients together, the other apart.
    EXPECT_EQ(part->position, static_cast<size_t>(4 - d));
    EXPECT_EQ(part->a.name, std::to_string(d) + "BW0");
    EXPECT_EQ(part->b.name, std::to_string(d) + "B0");
    EXPECT_GE(part->a.start, part->b.start);
  }
  EXPECT_EQ(compared.first, 3);  // F of the others' warm-up, then the first backward of all
}

TEST(Orders, DifferencesOfADeviceSumToThatOfIterations) {
  const std::vector<std::string> settings{"", "optimizer: {sync: post_validation}\n",
                                          "optimizer: {sync: all_reduce}\n"};
  for (const std::string& setting : settings) {
    const Answer a = answer_of("1f1b", 8, setting);
    for (const std::string schedule : {"gpipe", "zb-h2", "zb-v", "interleaved-1f1b", "dualpipev"}) {
      const bool overlaps = schedule == "dualpipev";
      const Answer b =
          answer_of(overlaps ? "{name: dualpipev, overlap: false}" : schedule, 8, setting);
      const OrdersCompared compared = compare_orders(a.result, b.result);
      const double apart = (b.result.report.iteration - a.result.report.iteration).value();
      for (const DeviceLoss& loss : compared.losses) {
        EXPECT_NEAR(loss.sum().value(), apart, 1e-12) << schedule << setting;
      }
      EXPECT_NEAR(compared.mean.sum().value(), apart, 1e-12) << schedule << setting;
      if (setting.empty()) {
        EXPECT_NEAR(apart, (b.result.report.makespan - a.result.report.makespan).value(), 1e-12);
        EXPECT_NEAR(compared.path[1].sum().value(), b.result.report.makespan.value(), 1e-12);
      }
    }
  }
}

TEST(Orders, OfOneScheduleAreTheSame) {
  const Answer a = answer_of("zb-h1");
  const OrdersCompared compared = compare_orders(a.result, a.result);
  EXPECT_FALSE(compared.first.has_value());
  EXPECT_TRUE(causes_in(compared).empty());
  const std::string text = orders_text(a, a, compared);
  EXPECT_NE(text.find("A and B take the same time."), std::string::npos) << text;
  EXPECT_NE(text.find("The orders are the same on every device."), std::string::npos) << text;
}

// 1F1B of fewer microbatches ends where the last device of the other goes on.
TEST(Orders, AnOrderThatEndsSoonerHasNoPassThere) {
  const Answer few = answer_of("1f1b", 8);
  const Answer more = answer_of("1f1b", 9);
  const auto part = compare_orders(few.result, more.result).parts[3];
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->position, 16U);
  EXPECT_EQ(part->a.name, "");
  EXPECT_EQ(part->b.name, "3F8");
}

TEST(Orders, AreADocumentThatSaysTheSame) {
  const Answer a = answer_of("1f1b");
  const Answer b = answer_of("zb-v");
  const OrdersCompared compared = compare_orders(a.result, b.result);
  const auto json = nlohmann::json::parse(orders_json(a, b, compared, "0"));
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["a"]["order"], "1f1b");
  EXPECT_EQ(json["first_difference_device"], *compared.first);
  EXPECT_EQ(json["first_differences"][0]["position"], compared.parts[0]->position);
  EXPECT_EQ(json["first_differences"][0]["b"]["pass"], compared.parts[0]->b.name);
  EXPECT_DOUBLE_EQ(json["b_less_a_seconds"]["mean"]["sum"].get<double>(),
                   compared.mean.sum().value());
  EXPECT_EQ(json["b"]["critical_path_seconds"]["devices"].size(), 4U);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Orders, AreDrawnOnOneAxisWithAFrameForEachDevice) {
  const Answer a = answer_of("1f1b");
  const Answer b = answer_of("zb-v");
  const OrdersCompared compared = compare_orders(a.result, b.result);
  const std::string svg = orders_svg(a, b, compared);
  EXPECT_EQ(count_of(svg, "stroke-width=\"3\""), 8U);
  EXPECT_EQ(count_of(svg, "<svg "), 3U);
  EXPECT_EQ(count_of(svg, "</svg>"), 3U);
  // Styles of the two do not meet: each has classes of its own.
  EXPECT_NE(svg.find("rect.AF0{"), std::string::npos);
  EXPECT_NE(svg.find("rect.BF0{"), std::string::npos);
  EXPECT_EQ(svg.find("rect.F0{"), std::string::npos);
  // The rows of both are as wide.
  const size_t row = svg.find("<rect class=\"row\"");
  const std::string width = svg.substr(svg.find("width=", row), 12);
  EXPECT_EQ(count_of(svg, width), 8U) << width;
}

TEST(Orders, AreShownOnThePageOfAReport) {
  Answer a = answer_of("1f1b");
  const Answer b = answer_of("zb-h1");
  a.made.label = "<b>&";
  const HtmlReport report =
      orders_report(a, b, compare_orders(a.result, b.result), "1", {"batch.num_microbatches=8"});
  const std::string page = report.page(PIPESIM_SOURCE_DIR "/sim/report/html/page", {});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const size_t from = page.find(begin) + begin.size();
  const auto data = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  ASSERT_EQ(data["runs"].size(), 2U);
  for (const auto& run : data["runs"]) {
    EXPECT_EQ(run["overrides"], nlohmann::json({"batch.num_microbatches=8"}));
  }
  const auto& orders = data["orders"];
  EXPECT_EQ(orders["marked"], nlohmann::json({4, 3, 2, 1}));
  EXPECT_TRUE(orders["sentences"][0].get<std::string>().starts_with("B takes "));
  ASSERT_EQ(orders["tables"].size(), 3U);
  EXPECT_EQ(orders["tables"][1]["rows"].size(), 5U);  // the head, and a device each
}

}  // namespace
}  // namespace pipesim::orders_test
