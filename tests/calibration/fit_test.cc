#include "validate/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <stdexcept>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/calibration/curves.h"
#include "validate/calibration/statistics.h"

namespace pipesim::calibration::fit_test {
namespace {

constexpr double kNoise = 0.02;

// A factor with the spread of measurements; uniform, so that it is the same on every platform.
double noise(std::mt19937& random) {
  const double unit = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
  return 1 + kNoise * (2 * unit - 1);
}

Gpu known_gpu() {
  Gpu gpu;
  gpu.peak = {FlopsPerSecond(800e12)};
  gpu.memory_bandwidth = BytesPerSecond(3e12);
  gpu.multiprocessors = 120;
  gpu.launch = Seconds(3e-6);
  gpu.matmul = {.efficiency = {0.85, 0.85},
                .memory_efficiency = 0.75,
                .fill = 200,
                .edge = 12,
                .split = 900,
                .tail = 0.6,
                .slowdown = 0.03,
                .slowdown_flops = Flops(5e10)};
  return gpu;
}

std::vector<MatmulRow> measured(const Gpu& gpu, std::mt19937& random) {
  std::vector<MatmulRow> rows;
  for (const std::int64_t m : {64, 192, 512, 1024, 2048, 8192}) {
    for (const std::int64_t n : {256, 1024, 2560, 4096, 12288}) {
      for (const std::int64_t k : {128, 1024, 4096, 16384}) {
        const Matmul matmul{.m = m, .n = n, .k = k};
        rows.push_back({matmul, noise(random) * matmul_seconds(gpu, matmul)});
      }
    }
  }
  return rows;
}

TEST(Fit, RecoversAKnownMatmulCurveFromNoisyRows) {
  std::mt19937 random(7);
  const Gpu known = known_gpu();
  const auto rows = measured(known, random);
  Gpu start = known;
  start.matmul = {};
  start.launch = {};
  const Gpu fitted = fit_matmul(start, rows);
  EXPECT_LT(summarize(errors(fitted, rows)).median, 1.2 * kNoise / 2);
  EXPECT_NEAR(fitted.launch / known.launch, 1, 0.1);
  EXPECT_NEAR(fitted.matmul.memory_efficiency, 0.75, 0.05);
  EXPECT_LE(fitted.matmul.efficiency[0], 1);
  // Shapes that it has not seen.
  for (const std::int64_t side : {1536, 3072, 6144, 10240}) {
    const Matmul unseen{.m = side, .n = side + 512, .k = 5120};
    EXPECT_NEAR(matmul_seconds(fitted, unseen) / matmul_seconds(known, unseen), 1, 0.03) << side;
  }
}

TEST(Fit, IsTheSameEveryTime) {
  std::mt19937 random(7);
  const auto rows = measured(known_gpu(), random);
  const Gpu once = fit_matmul(known_gpu(), rows);
  const Gpu again = fit_matmul(known_gpu(), rows);
  EXPECT_EQ(once.launch, again.launch);
  EXPECT_EQ(once.matmul.efficiency, again.matmul.efficiency);
  EXPECT_EQ(once.matmul.edge, again.matmul.edge);
}

TEST(Fit, RecoversAKnownCollectiveFromNoisyRows) {
  std::mt19937 random(3);
  const CollectiveCurve known{.base = Seconds(8e-6),
                              .per_rank = Seconds(1e-6),
                              .bandwidth = BytesPerSecond(240e9),
                              .ramp = Bytes(4e6),
                              .own_share = 0.3};
  std::vector<CollectiveRow> rows;
  for (const int ranks : {2, 4, 8}) {
    for (double bytes = 512; bytes < 1e9; bytes *= 2) {
      const auto kind = CollectiveKind::kAllGather;
      rows.push_back({kind, ranks, Bytes(bytes),
                      noise(random) * collective_seconds(known, kind, Bytes(bytes), ranks)});
    }
  }
  const CollectiveCurve fitted = fit_collective(rows);
  EXPECT_NEAR(fitted.base / known.base, 1, 0.05);
  EXPECT_NEAR(fitted.per_rank / known.per_rank, 1, 0.1);
  EXPECT_NEAR(fitted.bandwidth / known.bandwidth, 1, 0.05);
  EXPECT_LT(summarize(errors(fitted, rows)).median, 1.2 * kNoise / 2);
}

// Excerpts of published measurements; their source stands in the files.
const std::string kRecorded = std::string(PIPESIM_SOURCE_DIR) + "/tests/calibration/data/";

TEST(Fit, FollowsRecordedMatmulsOfAnH100) {
  Gpu gpu;
  gpu.peak = {FlopsPerSecond(989e12)};
  gpu.memory_bandwidth = BytesPerSecond(3.35e12);
  gpu.multiprocessors = 132;
  const auto rows = read_matmuls(kRecorded + "gemm_bf16_h100.csv");
  ASSERT_EQ(rows.size(), 252U);
  std::vector<MatmulRow> seen;
  std::vector<MatmulRow> unseen;
  for (const MatmulRow& row : rows) {
    (row.matmul.k == 2048 || row.matmul.n == 4096 ? unseen : seen).push_back(row);
  }
  const ErrorSummary all = summarize(errors(fit_matmul(gpu, rows), rows));
  EXPECT_LT(all.median, 0.05);
  EXPECT_LT(all.p90, 0.17);
  EXPECT_LT(summarize(errors(fit_matmul(gpu, seen), unseen)).median, 0.06);
}

TEST(Fit, FollowsRecordedCollectivesOfAnH100Node) {
  const auto all = read_collectives(kRecorded + "nccl_h100.csv");
  ASSERT_EQ(all.size(), 168U);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    std::vector<CollectiveRow> rows;
    std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
                 [&](const CollectiveRow& row) { return row.kind == kind; });
    const ErrorSummary error = summarize(errors(fit_collective(rows), rows));
    EXPECT_LT(error.median, 0.05) << static_cast<int>(kind);
    EXPECT_LT(error.p90, 0.21) << static_cast<int>(kind);
  }
}

TEST(Fit, OfOneNumberOfRanksSaysNothingOfWhatEachAdds) {
  const CollectiveCurve known{.base = Seconds(9e-6),
                              .per_rank = Seconds(1e-6),
                              .bandwidth = BytesPerSecond(300e9),
                              .ramp = Bytes(3e6),
                              .own_share = 0.3};
  std::vector<CollectiveRow> rows;
  for (double bytes = 1 << 12; bytes <= 1 << 28; bytes *= 4) {
    const auto kind = CollectiveKind::kAllReduce;
    rows.push_back({kind, 4, Bytes(bytes), collective_seconds(known, kind, Bytes(bytes), 4)});
  }
  const CollectiveCurve fitted = fit_collective(rows);
  EXPECT_EQ(fitted.per_rank, Seconds(0));
  EXPECT_EQ(fitted.own_share, 0);
  EXPECT_LT(summarize(errors(fitted, rows)).p90, 0.02);
}

TEST(Fit, FindsLatencyAndBandwidthBySize) {
  std::vector<SizeRow> rows;
  for (double bytes = 1024; bytes < 1e9; bytes *= 2) {
    rows.push_back({Bytes(bytes), Seconds(12e-6 + bytes / 25e9)});
  }
  const SizeCurve curve = fit_by_size(rows);
  EXPECT_NEAR(curve.latency.value(), 12e-6, 1e-8);
  EXPECT_NEAR(curve.bandwidth.value(), 25e9, 3e7);
}

TEST(Fit, LeavesTheHeadsRampAloneWhereOneSizeOfHeadsWasMeasured) {
  Gpu gpu = known_gpu();
  gpu.attention[0] = {.efficiency = 0.6, .head_ramp = 30, .streaming = 0.9};
  std::vector<AttentionRow> rows;
  for (const double length : {512, 1024, 2048, 4096, 8192}) {
    const Attention attention{.flops = Flops(2.0 * 32 * length * length * 128),
                              .moved = Bytes(4 * 32 * length * 128 * 2),
                              .head_size = 128};
    rows.push_back({attention, attention_seconds(gpu, attention)});
  }
  gpu.attention[0].efficiency = 1;
  const Gpu fitted = fit_attention(gpu, rows);
  EXPECT_EQ(fitted.attention[0].head_ramp, 30);
  EXPECT_NEAR(fitted.attention[0].efficiency, 0.6, 0.01);
}

TEST(Fit, TellsAttentionsTailWhereRowsAreFewAndMany) {
  Gpu gpu = known_gpu();
  gpu.attention[0] = {.efficiency = 0.6, .head_ramp = 30, .streaming = 0.9, .tail = 1.8};
  std::vector<AttentionRow> rows;
  for (const double heads : {2, 8, 32, 128}) {
    for (const double length : {1024, 4096}) {
      const Attention attention{.flops = Flops(2 * heads * length * length * 128),
                                .moved = Bytes(4 * heads * length * 128 * 2),
                                .head_size = 128,
                                .rows = heads * length};
      rows.push_back({attention, attention_seconds(gpu, attention)});
    }
  }
  gpu.attention[0].tail = 0.5;
  EXPECT_NEAR(fit_attention(gpu, rows).attention[0].tail, 1.8, 0.02);
  // 128 heads of 4096 tokens, over and over: its rows do not tell.
  rows.assign(4, rows.back());
  EXPECT_EQ(fit_attention(gpu, rows).attention[0].tail, 0.5);
}

TEST(Fit, RefusesTooFewRows) {
  EXPECT_THROW((void)fit_by_size({}), std::invalid_argument);
  EXPECT_THROW((void)fit_attention(known_gpu(), {}), std::invalid_argument);
  EXPECT_THROW((void)fit_streaming(known_gpu(), {}), std::invalid_argument);
  EXPECT_THROW((void)fit_matmul(known_gpu(), {}), std::invalid_argument);
  EXPECT_THROW((void)fit_collective({}), std::invalid_argument);
}

TEST(Errors, AreSummarizedByTheirSize) {
  const ErrorSummary summary = summarize({-0.3, 0.1, 0.0, 0.2, -0.1});
  EXPECT_EQ(summary.rows, 5U);
  EXPECT_DOUBLE_EQ(summary.median, 0.1);
  EXPECT_DOUBLE_EQ(summary.p90, 0.26);
  EXPECT_DOUBLE_EQ(summary.worst, 0.3);
}

class Curves : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    const auto path = pipesim::testing::test_folder() / "curve.csv";
    pipesim::testing::write_file(path, text);
    return path.string();
  }
  static std::string refusal(const std::string& path) {
    try {
      (void)read_matmuls(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Curves, AreReadByTheNamesOfTheirColumns) {
  const auto matmuls = read_matmuls(file("n,m,k,latency_ms,tflops\n64,32,128,0.5,1\r\n"));
  ASSERT_EQ(matmuls.size(), 1U);
  EXPECT_EQ(matmuls[0].matmul.m, 32);
  EXPECT_EQ(matmuls[0].matmul.n, 64);
  EXPECT_DOUBLE_EQ(matmuls[0].measured.value(), 0.5e-3);
  const auto collectives = read_collectives(file("op,gpus,bytes,latency_us\nalltoall,4,512,8.5\n"));
  ASSERT_EQ(collectives.size(), 1U);
  EXPECT_EQ(collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(collectives[0].ranks, 4);
  EXPECT_DOUBLE_EQ(collectives[0].measured.value(), 8.5e-6);
}

TEST_F(Curves, AreRefusedWithTheLine) {
  EXPECT_NE(refusal(file("m,n,k\n")).find("expected a column 'latency_ms'"), std::string::npos);
  EXPECT_NE(refusal(file("m,n,k,latency_ms\n1,2,3,0.1\n1,2,3\n")).find(":3:1: this line is too"),
            std::string::npos);
  EXPECT_NE(refusal(file("m,n,k,latency_ms\n1,2,3,-1\n"))
                .find("latency_ms: expected a number greater than 0, not '-1'"),
            std::string::npos);
  EXPECT_NE(refusal("/nowhere.csv").find("cannot read"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::calibration::fit_test
