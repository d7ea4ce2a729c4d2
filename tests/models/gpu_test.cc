#include "models/gpu.h"

#include <cmath>
#include <gtest/gtest.h>

#include "sim/core/error.h"

namespace pipesim::gpu_test {
namespace {

Gpu some_gpu() {
  Gpu gpu;
  gpu.name = "some";
  gpu.peak = {FlopsPerSecond(1e15), FlopsPerSecond(2e15)};
  gpu.memory_bandwidth = BytesPerSecond(3e12);
  gpu.multiprocessors = 100;
  gpu.launch = Seconds(2e-6);
  gpu.matmul = {.efficiency = {0.9, 0.8},
                .memory_efficiency = 0.8,
                .fill = 200,
                .edge = 10,
                .split = 500,
                .tail = 0.7,
                .slowdown = 0.03,
                .slowdown_flops = Flops(1e11)};
  gpu.attention = {AttentionCurve{.efficiency = 0.8, .head_ramp = 32, .streaming = 1.5, .tail = 2},
                   AttentionCurve{.efficiency = 0.6, .head_ramp = 16, .streaming = 0.5, .tail = 1}};
  gpu.streaming = 0.75;
  return gpu;
}

TEST(Matmul, NeverExceedsThePeakNorTheMemoryBandwidth) {
  Gpu gpu = some_gpu();
  gpu.launch = {};
  for (const double edge : {0.0, 40.0}) {
    for (const double tail : {0.0, 1.0}) {
      gpu.matmul = {.edge = edge, .tail = tail};
      for (const std::int64_t m : {1, 64, 1000, 1024, 12800, 100000}) {
        for (const std::int64_t n : {1, 192, 4096, 8192}) {
          for (const std::int64_t k : {1, 64, 500, 4096, 65536}) {
            const Matmul matmul{.m = m, .n = n, .k = k};
            const Seconds seconds = matmul_seconds(gpu, matmul);
            EXPECT_LE(matmul.flops() / seconds, gpu.peak[0] * (1 + 1e-12))
                << m << " " << n << " " << k;
            const double moved = 2.0 * static_cast<double>(m * k + k * n + m * n);
            EXPECT_LE(Bytes(moved) / seconds, gpu.memory_bandwidth * (1 + 1e-12));
          }
        }
      }
    }
  }
}

TEST(Matmul, IsNeverFasterForALargerShape) {
  const Gpu gpu = some_gpu();
  const auto seconds = [&gpu](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
    return matmul_seconds(gpu, {.m = m, .n = n, .k = k, .batch = batch});
  };
  for (std::int64_t side = 1; side < 9000; side += side / 16 + 1) {
    const std::int64_t next = side + side / 16 + 1;
    EXPECT_GE(seconds(next, 4096, 4096, 1), seconds(side, 4096, 4096, 1)) << side;
    EXPECT_GE(seconds(512, next, 4096, 1), seconds(512, side, 4096, 1)) << side;
    EXPECT_GE(seconds(512, 768, next, 1), seconds(512, 768, side, 1)) << side;
    EXPECT_GE(seconds(512, 512, 512, next), seconds(512, 512, 512, side)) << side;
  }
}

TEST(Matmul, FillsWavesOfTilesAndTakesTheBestOne) {
  Gpu gpu = some_gpu();
  gpu.launch = {};
  gpu.memory_bandwidth = BytesPerSecond(1e18);
  gpu.matmul = {};
  // 100 multiprocessors: 100 tiles of 128 x 256 fill one wave exactly, at the peak.
  const Matmul full{.m = 1280, .n = 2560, .k = 4096};
  EXPECT_NEAR(full.flops() / matmul_seconds(gpu, full) / gpu.peak[0], 1, 1e-9);
  // One row more needs another row of tiles; the least tiles (64 x 64) lose least: 21 x 40 = 840
  // tiles are 9 waves where 8 were enough before.
  const Matmul more{.m = 1281, .n = 2560, .k = 4096};
  EXPECT_NEAR(matmul_seconds(gpu, more) / matmul_seconds(gpu, full), 9 / 8.0, 1e-9);
}

TEST(Matmul, AddsLaunchFillAndSlowdown) {
  Gpu gpu = some_gpu();
  gpu.memory_bandwidth = BytesPerSecond(1e18);
  gpu.matmul = {.fill = 1024, .slowdown = 0.1, .slowdown_flops = Flops(1e9)};
  const Matmul matmul{.m = 1280, .n = 2560, .k = 4096};
  const double flops = 2.0 * 1280 * 2560 * 4096;
  EXPECT_NEAR(matmul_seconds(gpu, matmul).value(),
              2e-6 + flops * 1.25 * (1 + 0.1 * std::log1p(flops / 1e9)) / 1e15, 1e-15);
}

TEST(Matmul, TakesHalfTheTimeInFp8WhereComputeBinds) {
  Gpu gpu = some_gpu();
  gpu.launch = {};
  gpu.matmul = {};
  const Matmul bf16{.m = 12800, .n = 25600, .k = 8192};
  Matmul fp8 = bf16;
  fp8.precision = Precision::kFp8;
  EXPECT_NEAR(matmul_seconds(gpu, bf16) / matmul_seconds(gpu, fp8), 2, 0.01);
  gpu.peak[1] = {};
  EXPECT_FALSE(gpu.has(Precision::kFp8));
  EXPECT_THROW((void)matmul_seconds(gpu, fp8), LogicError);
}

TEST(AttentionSeconds, AddSoftmaxByHeadAndStreamingByBytes) {
  const Gpu gpu = some_gpu();
  const Attention forward{.flops = Flops(1e12), .moved = Bytes(4.5e9), .head_size = 128};
  EXPECT_NEAR(attention_seconds(gpu, forward).value(), 2e-6 + 1e12 * 1.25 / 0.8e15 + 1e-3, 1e-12);
  Attention backward = forward;
  backward.backward = true;
  EXPECT_NEAR(attention_seconds(gpu, backward).value(), 2e-6 + 1e12 * 1.125 / 0.6e15 + 3e-3, 1e-12);
  Attention small_heads = forward;
  small_heads.head_size = 64;
  EXPECT_GT(attention_seconds(gpu, small_heads), attention_seconds(gpu, forward));
}

// 100 multiprocessors hold 100 x 128 rows in a wave: as many rows as that cost three times as much
// for each with a tail of two blocks.
TEST(AttentionSeconds, OfFewRowsWaitForTheLongest) {
  const Gpu gpu = some_gpu();
  Attention few{.flops = Flops(1e12), .moved = {}, .head_size = 128, .rows = 12800};
  const Seconds endless =
      attention_seconds(gpu, {.flops = few.flops, .moved = {}, .head_size = 128});
  EXPECT_NEAR((attention_seconds(gpu, few) - gpu.launch) / (endless - gpu.launch), 3, 1e-12);
  few.backward = true;
  EXPECT_NEAR(attention_seconds(gpu, few).value(), 2e-6 + 2 * 1e12 * 1.125 / 0.6e15, 1e-12);
}

TEST(MemoryBoundSeconds, CountEveryLaunch) {
  const Gpu gpu = some_gpu();
  EXPECT_NEAR(memory_bound_seconds(gpu, Bytes(2.25e9), 3).value(), 6e-6 + 1e-3, 1e-15);
}

}  // namespace
}  // namespace pipesim::gpu_test
