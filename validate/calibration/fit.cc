#include "validate/calibration/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "validate/calibration/search.h"

namespace pipesim::calibration {
namespace {

constexpr std::int64_t kUsed = 1024;   // every side, of the shapes that training uses
constexpr std::int64_t kWhole = 64;    // which every side is a multiple of
constexpr std::int64_t kLeast = 64;    // every side, of shapes that count at all
constexpr std::size_t kEnough = 4000;  // rows of a sort; of more, evenly spaced ones are taken
constexpr double kOtherWeight = 0.25;
// Where the search begins: small and large costs of a tile's edge are separate valleys.
constexpr std::array<std::array<double, 2>, 2> kStarts{{{1, 64}, {20, 256}}};  // edge, fill
constexpr std::array<double, 2> kSlowdownStart{0.02, 1e11};

std::int64_t least_side(const Matmul& matmul) { return std::min({matmul.m, matmul.n, matmul.k}); }

std::vector<MatmulRow> thinned(const std::vector<MatmulRow>& rows) {
  if (rows.size() <= kEnough) return rows;
  std::vector<MatmulRow> kept;
  for (std::size_t i = 0; i < kEnough; ++i) kept.push_back(rows[i * rows.size() / kEnough]);
  return kept;
}

double mean_error(std::span<const double> errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

Gpu with_constants(Gpu gpu, const std::vector<double>& values) {
  gpu.launch = Seconds(values[0]);
  gpu.matmul.efficiency[0] = values[1];
  gpu.matmul.memory_efficiency = values[2];
  gpu.matmul.fill = values[3];
  gpu.matmul.edge = values[4];
  gpu.matmul.split = values[5];
  gpu.matmul.tail = values[6];
  gpu.matmul.slowdown = values[7];
  gpu.matmul.slowdown_flops = Flops(values[8]);
  return gpu;
}

CollectiveCurve curve_with(const std::vector<double>& values) {
  return {.base = Seconds(values[0]),
          .per_rank = Seconds(values[1]),
          .bandwidth = BytesPerSecond(values[2]),
          .ramp = Bytes(values[3]),
          .own_share = values[4]};
}

}  // namespace

bool used_in_training(const Matmul& matmul) {
  const bool whole = matmul.m % kWhole == 0 && matmul.n % kWhole == 0 && matmul.k % kWhole == 0;
  return whole && least_side(matmul) >= kUsed;
}

std::vector<double> errors(const Gpu& gpu, std::span<const MatmulRow> rows) {
  std::vector<double> all;
  all.reserve(rows.size());
  for (const MatmulRow& row : rows) {
    all.push_back(matmul_seconds(gpu, row.matmul) / row.measured - 1);
  }
  return all;
}

Gpu fit_matmul(Gpu gpu, std::span<const MatmulRow> rows) {
  std::vector<MatmulRow> used;
  std::vector<MatmulRow> other;
  Seconds shortest(std::numeric_limits<double>::infinity());
  for (const MatmulRow& row : rows) {
    if (used_in_training(row.matmul)) {
      used.push_back(row);
    } else if (least_side(row.matmul) >= kLeast) {
      other.push_back(row);
    }
    shortest = std::min(shortest, row.measured);
  }
  if (used.empty() || other.empty()) {
    throw std::invalid_argument(
        "a matmul fit needs rows of the shapes that training uses, and others");
  }
  used = thinned(used);
  other = thinned(other);
  const auto error = [&](const std::vector<double>& values) {
    const Gpu tried = with_constants(gpu, values);
    return mean_error(errors(tried, used)) + kOtherWeight * mean_error(errors(tried, other));
  };
  Found best{{}, std::numeric_limits<double>::infinity()};
  for (const auto& [edge, fill] : kStarts) {
    const Found found = least_error({{shortest.value()},
                                     {0.8, 1},
                                     {0.8, 1},
                                     {fill},
                                     {edge},
                                     {100},
                                     {0.5, 1},
                                     {kSlowdownStart[0]},
                                     {kSlowdownStart[1]}},
                                    error);
    if (found.error < best.error) best = found;
  }
  return with_constants(gpu, best.values);
}

std::vector<double> errors(const CollectiveCurve& curve, std::span<const CollectiveRow> rows) {
  std::vector<double> all;
  all.reserve(rows.size());
  for (const CollectiveRow& row : rows) {
    all.push_back(collective_seconds(curve, row.kind, row.bytes, row.ranks) / row.measured - 1);
  }
  return all;
}

CollectiveCurve fit_collective(std::span<const CollectiveRow> rows) {
  if (rows.size() < 6) throw std::invalid_argument("a collective's fit needs at least six rows");
  BytesPerSecond fastest;
  Seconds shortest(std::numeric_limits<double>::infinity());
  for (const CollectiveRow& row : rows) {
    fastest = std::max(fastest, row.bytes / row.measured);
    shortest = std::min(shortest, row.measured);
  }
  const auto error = [&](const std::vector<double>& values) {
    return mean_error(errors(curve_with(values), rows));
  };
  const Found found = least_error(
      {{shortest.value()}, {shortest.value() / 4}, {fastest.value()}, {1e6}, {0.3, 4}}, error);
  return curve_with(found.values);
}

}  // namespace pipesim::calibration
