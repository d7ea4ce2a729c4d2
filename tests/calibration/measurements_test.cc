#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <stdexcept>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/calibration/compose.h"
#include "validate/calibration/measurements_csv.h"

namespace pipesim::calibration::measurements_test {
namespace {

Point timed(Point point, double median) {
  point.time_us = {median, 0.9 * median, 1.2 * median, 0.8 * median, 11};
  point.samples_us = {0.8 * median, median, 1.2 * median};
  point.launches_per_repetition = 5;
  return point;
}

Measurements example() {
  Measurements measured;
  measured.facts = {{"device", "Example: GPU"}, {"driver", "1.2.3"}};
  measured.points.push_back(
      timed(point_of(MatmulSpec{MatmulPass::kForward, Precision::kBf16, 1024, 2048, 4096}), 25.5));
  measured.points.back().state = CardState{1755, 2619, 51, 640.5, 4};
  measured.points.push_back(timed(point_of(KernelSpec{Kernel::kCopy, 4096, 4096}), 30));
  measured.not_measured.push_back({"nccl", "one GPU:\nthere is nobody to send to"});
  return measured;
}

std::string text_of(const Measurements& measured) {
  std::ostringstream out;
  write_measurements(measured, out);
  return out.str();
}

std::string file(const std::string& text) {
  const auto path = pipesim::testing::test_folder() / "measurements.csv";
  pipesim::testing::write_file(path, text);
  return path.string();
}

TEST(Measurements, ReadBackAsTheyWereWritten) {
  const Measurements written = example();
  const Measurements read = read_measurements(file(text_of(written)));
  EXPECT_EQ(read.facts, written.facts);
  ASSERT_EQ(read.not_measured.size(), 1U);
  EXPECT_EQ(read.not_measured[0].reason, "one GPU: there is nobody to send to");
  ASSERT_EQ(read.points.size(), 2U);
  for (std::size_t i = 0; i < read.points.size(); ++i) {
    EXPECT_EQ(read.points[i].key(), written.points[i].key());
    EXPECT_EQ(read.points[i].flops, written.points[i].flops);
    EXPECT_EQ(read.points[i].bytes, written.points[i].bytes);
    EXPECT_EQ(read.points[i].time_us.median, written.points[i].time_us.median);
    EXPECT_EQ(read.points[i].time_us.repetitions, 11U);
    EXPECT_NEAR(read.points[i].time_us.spread(), 0.3, 1e-5);
  }
}

TEST(Measurements, AreRefusedWithTheirLine) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)read_measurements(file(text));
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto has = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  };
  const std::string good = text_of(example());
  EXPECT_EQ(refusal(good), "accepted");
  has("group,name\n", ":1:1: expected a column 'parameters'");
  has(good.substr(good.find('\n') + 1),
      "expected the file to begin with '# pipesim-measurements/1'");
  has(good + "matmul,fprop\n", ":8:1: this line is too short");
  has(good + "a,b,c,0,0,1,1,1,1,1\n", ":8:1: parameters: expected name=value, not 'c'");
  has(good + "a,b,c=1,0,0,1x,1,1,1,1\n", "median_us: expected a number greater than 0, not '1x'");
  has(good + "a,b,c=1,-1,0,1,1,1,1,1\n", "flops: expected a number of at least 0, not '-1'");
  has(good + "a,b,c=1,0,0,inf,1,1,1,1\n", "median_us: expected a number greater than 0, not 'inf'");
  has("", "cannot read the file");
}

TEST(Measurements, SamplesAreListedByTheKeyOfTheirPoint) {
  std::ostringstream out;
  write_samples(example(), out);
  EXPECT_NE(out.str().find("kernel/copy/rows=4096/columns=4096,24 30 36\n"), std::string::npos);
}

TEST(Measurements, ConditionsAreTheRangesOfTheReadings) {
  Measurements measured = example();
  EXPECT_EQ(conditions(measured.points)[0],
            std::make_pair(std::string("sm_clock_mhz"), std::string("1755 to 1755, median 1755")));
  measured.points[0].state.reset();
  EXPECT_TRUE(conditions(measured.points).empty());
}

TEST(Times, AreSummarizedBetweenTheSamples) {
  const TimeSummary summary = summarize_times({5, 1, 3, 2, 4});
  EXPECT_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.p10, 1.4);
  EXPECT_DOUBLE_EQ(summary.p90, 4.6);
  EXPECT_EQ(summary.minimum, 1);
  EXPECT_EQ(summary.repetitions, 5U);
  EXPECT_DOUBLE_EQ(summary.spread(), 3.2 / 3);
  EXPECT_THROW((void)summarize_times({}), std::invalid_argument);
  EXPECT_THROW((void)summarize_times({1, std::nan("")}), std::invalid_argument);
}

TEST(Compose, ALayersPassIsTheSumOfItsParts) {
  const LayerSlice slice{layer_named("gpt-6.2b"), 1, 3, 1024};
  Measurements measured;
  std::set<std::string> added;
  const auto add = [&](Point point) {
    if (added.insert(point.key()).second) measured.points.push_back(timed(std::move(point), 10));
  };
  for (const auto& spec : layer_matmuls(slice, Precision::kBf16)) add(point_of(spec));
  for (const auto& spec : layer_kernels(slice, 'B')) add(point_of(spec));
  add(point_of(slice.attention(), true));
  const Composition b = compose_layer(measured, slice, 'B');
  EXPECT_TRUE(b.missing.empty());
  EXPECT_DOUBLE_EQ(b.point.time_us.median, 12 * 10.0);
  EXPECT_EQ(b.point.time_us.repetitions, 11U);
  EXPECT_DOUBLE_EQ(b.point.flops, 2.0 * 3072 * 12 * 4096.0 * 4096.0 +
                                      slice.attention().attention(true).flops.value());
  // Two dropouts, two norms and two residual additions, one GELU; four matmuls and the attention.
  EXPECT_EQ(layer_parts(slice, 'B').size(), 12U);
}

TEST(Compose, APartThatWasNotMeasuredIsNamed) {
  const LayerSlice slice{layer_named("gpt-6.2b"), 1, 3, 1024};
  const Composition f = compose_vocabulary(Measurements{}, slice, 'F');
  ASSERT_EQ(f.missing.size(), 2U);
  EXPECT_EQ(f.missing[0], "matmul/fprop/dtype=bf16/tokens=3072/in=4096/out=51200");
  EXPECT_EQ(f.missing[1], "kernel/cross_entropy_forward/rows=3072/columns=51200");
}

}  // namespace
}  // namespace pipesim::calibration::measurements_test
