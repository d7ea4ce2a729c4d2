#include "models/gpu.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "sim/core/error.h"

namespace pipesim {
namespace {

struct Tile {
  double rows;
  double columns;
};

// Results of a thread block in the libraries' kernels; the last one is the curve's reference.
constexpr std::array<Tile, 8> kTiles{
    {{64, 64}, {64, 128}, {128, 64}, {128, 128}, {64, 256}, {256, 64}, {256, 128}, {128, 256}}};
constexpr double kStep = 64;        // elements of k that a tile takes at a time
constexpr double kLeastPart = 256;  // no part of a split k is shorter

double tile_cost(double edge, const Tile& tile) {
  return 1 + edge * (1 / tile.rows + 1 / tile.columns);
}

double waves(double tiles, double multiprocessors, double tail) {
  const double wave = tiles / multiprocessors;
  return wave <= 1 ? 1 : wave + tail * (std::ceil(wave) - wave);
}

// Flops that the multiprocessors are held for, idle ones and overheads counted as if they computed.
double held_flops(const MatmulCurve& curve, double multiprocessors, const Matmul& matmul) {
  const auto rows = static_cast<double>(matmul.m);
  const auto columns = static_cast<double>(matmul.n);
  const auto inner = static_cast<double>(matmul.k);
  // Pipelines fill by bytes.
  const double dense = matmul.precision == Precision::kFp8 ? 2 : 1;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns) *
                         static_cast<double>(matmul.batch);
    const double area =
        2 * tile.rows * tile.columns * multiprocessors * tile_cost(curve.edge, tile);
    const double whole = std::ceil(inner / kStep) * kStep + dense * curve.fill;
    least = std::min(least, area * whole * waves(tiles, multiprocessors, curve.tail));
    const double parts = std::floor(multiprocessors / tiles);
    if (parts < 2) continue;
    const double part = std::max(kLeastPart, std::ceil(inner / parts / kStep) * kStep) +
                        dense * (curve.fill + curve.split);
    least = std::min(least, area * part);
  }
  return least / tile_cost(curve.edge, kTiles.back());
}

double operand_bytes(const Matmul& matmul) {
  const auto rows = static_cast<double>(matmul.m);
  const auto columns = static_cast<double>(matmul.n);
  const auto inner = static_cast<double>(matmul.k);
  const double read = matmul.precision == Precision::kFp8 ? 1 : 2;
  return static_cast<double>(matmul.batch) * (read * inner * (rows + columns) + 2 * rows * columns);
}

}  // namespace

Seconds matmul_seconds(const Gpu& gpu, const Matmul& matmul) {
  const auto precision = static_cast<size_t>(matmul.precision);
  if (!gpu.has(matmul.precision)) {
    throw LogicError(fmt::format("{} has no such precision", gpu.name));
  }
  const MatmulCurve& curve = gpu.matmul;
  const double slowdown = 1 + curve.slowdown * std::log1p(matmul.flops() / curve.slowdown_flops);
  const double compute = held_flops(curve, gpu.multiprocessors, matmul) * slowdown /
                         (gpu.peak[precision].value() * curve.efficiency[precision]);
  const double stream =
      operand_bytes(matmul) / (gpu.memory_bandwidth.value() * curve.memory_efficiency);
  // The fourth-power mean is the larger of the two where they differ, and a fifth more where not.
  const double a = compute * compute;
  const double b = stream * stream;
  return gpu.launch + Seconds(std::sqrt(std::sqrt(a * a + b * b)));
}

Seconds attention_seconds(const Gpu& gpu, const Attention& attention) {
  const AttentionCurve& curve = gpu.attention[attention.backward ? 1 : 0];
  const FlopsPerSecond rate =
      curve.efficiency / (1 + curve.head_ramp / attention.head_size) * gpu.peak[0];
  return gpu.launch + attention.flops / rate +
         attention.moved / (curve.streaming * gpu.memory_bandwidth);
}

Seconds memory_bound_seconds(const Gpu& gpu, Bytes moved, int kernels) {
  return kernels * gpu.launch + moved / (gpu.streaming * gpu.memory_bandwidth);
}

}  // namespace pipesim
