#include "models/gpu.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "sim/core/error.h"

namespace pipesim {
namespace {

// A tile's sides are 64 << rows and 64 << columns.
struct Tile {
  int rows;
  int columns;
  [[nodiscard]] constexpr double area() const { return 4096 << (rows + columns); }
  // 1 / rows + 1 / columns
  [[nodiscard]] constexpr double edge() const { return 1.0 / (64 << rows) + 1.0 / (64 << columns); }
};

// Results of a thread block in the libraries' kernels; the last one is the curve's reference.
constexpr std::array<Tile, 8> kTiles{
    {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}, {2, 1}, {1, 2}}};
constexpr double kStep = 64;            // elements of k that a tile takes at a time
constexpr double kAttentionRows = 128;  // of queries that a thread block of attention takes
constexpr double kLeastPart = 256;      // no part of a split k is shorter

// For numbers that fit a 64-bit integer; std::floor and std::ceil are calls on the oldest
// processors that we run on.
double whole(double value) { return static_cast<double>(static_cast<std::int64_t>(value)); }
double whole_up(double value) {
  const double below = whole(value);
  return below < value ? below + 1 : below;
}

// How many pieces of 64, 128 and 256 cover a side.
std::array<double, 3> pieces(std::int64_t side) {
  return {static_cast<double>((side + 63) >> 6), static_cast<double>((side + 127) >> 7),
          static_cast<double>((side + 255) >> 8)};
}

double waves(double tiles, double multiprocessors, double tail) {
  const double wave = tiles / multiprocessors;
  return wave <= 1 ? 1 : wave + tail * (whole_up(wave) - wave);
}

// Flops that the multiprocessors are held for, idle ones and overheads counted as if they computed.
double held_flops(const MatmulCurve& curve, double multiprocessors, const Matmul& matmul) {
  const auto rows = pieces(matmul.m);
  const auto columns = pieces(matmul.n);
  const auto batch = static_cast<double>(matmul.batch);
  // Pipelines fill by bytes.
  const double dense = 2 / size_of(matmul.precision);
  const double steps = whole_up(static_cast<double>(matmul.k) / kStep);
  const double unsplit = steps * kStep + dense * curve.fill;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = batch * rows[tile.rows] * columns[tile.columns];
    double held = unsplit * waves(tiles, multiprocessors, curve.tail);
    if (2 * tiles <= multiprocessors) {
      const double parts = whole(multiprocessors / tiles);
      const double part =
          std::max(kLeastPart, whole_up(static_cast<double>(matmul.k) / parts / kStep) * kStep) +
          dense * (curve.fill + curve.split);
      held = std::min(held, part);
    }
    least = std::min(least, held * tile.area() * (1 + curve.edge * tile.edge()));
  }
  return 2 * multiprocessors * least / (1 + curve.edge * kTiles.back().edge());
}

double operand_bytes(const Matmul& matmul) {
  const auto rows = static_cast<double>(matmul.m);
  const auto columns = static_cast<double>(matmul.n);
  const auto inner = static_cast<double>(matmul.k);
  const double read = size_of(matmul.precision);
  return static_cast<double>(matmul.batch) *
         (read * inner * (rows + columns) + matmul.result_bytes * rows * columns);
}

}  // namespace

Seconds matmul_seconds(const Gpu& gpu, const Matmul& matmul) {
  if (!gpu.has(matmul.precision)) {
    throw LogicError(fmt::format("{} has no such precision", gpu.name));
  }
  const MatmulCurve& curve = gpu.matmul;
  const double slowdown = 1 + curve.slowdown * std::log1p(matmul.flops() / curve.slowdown_flops);
  const double compute = held_flops(curve, gpu.multiprocessors, matmul) * slowdown /
                         (gpu.peak[matmul.precision].value() * curve.efficiency[matmul.precision]);
  const double stream =
      operand_bytes(matmul) / (gpu.memory_bandwidth.value() * curve.memory_efficiency);
  // The fourth-power mean is the larger of the two where they differ, and a fifth more where not.
  const double a = compute * compute;
  const double b = stream * stream;
  return gpu.launch + Seconds(std::sqrt(std::sqrt(a * a + b * b)));
}

Seconds attention_seconds(const Gpu& gpu, const Attention& attention) {
  const AttentionCurve& curve = gpu.attention[attention.backward ? 1 : 0];
  const Precision units = gpu.has(attention.precision) ? attention.precision : Precision::kBf16;
  const FlopsPerSecond rate =
      curve.efficiency / (1 + curve.head_ramp / attention.head_size) * gpu.peak[units];
  const double held = 1 + curve.tail * kAttentionRows * gpu.multiprocessors / attention.rows;
  return gpu.launch + held * attention.flops / rate +
         attention.moved / (curve.streaming * gpu.memory_bandwidth);
}

Seconds memory_bound_seconds(const Gpu& gpu, Bytes moved, int kernels) {
  return kernels * gpu.launch + moved / (gpu.streaming * gpu.memory_bandwidth);
}

}  // namespace pipesim
