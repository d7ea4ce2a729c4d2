#include "validate/calibration/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>
#include <utility>

#include "validate/calibration/search.h"

namespace pipesim::calibration {
namespace {

constexpr double kTellsATail = 4;  // most rows of attention, to the fewest
constexpr double kMostTail = 16;

constexpr std::int64_t kUsed = 1024;       // every side, of the shapes that training uses
constexpr std::int64_t kWhole = 64;        // which every side is a multiple of
constexpr std::int64_t kLeast = 64;        // every side, of shapes that count at all
constexpr std::size_t kEnough = 4000;      // rows of a sort; of more, evenly spaced ones are taken
constexpr std::size_t kLeastMatmuls = 18;  // twice the constants
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

void require_rows(std::size_t rows, std::size_t least, const char* what) {
  if (rows < least) {
    throw std::invalid_argument(
        fmt::format("{} needs at least {} rows, and there are {}", what, least, rows));
  }
}

double mean_error(std::span<const double> errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

// (seconds(row) - measured) / measured for every row.
template <class Row, class Model>
std::vector<double> errors_of(std::span<const Row> rows, Model seconds) {
  std::vector<double> all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back(seconds(row) / row.measured - 1);
  return all;
}

// Latency and bandwidth from which a search of sized rows begins: the shortest row, the best rate.
template <class Row>
std::pair<double, double> bounds(std::span<const Row> rows) {
  BytesPerSecond fastest;
  Seconds shortest(std::numeric_limits<double>::infinity());
  for (const Row& row : rows) {
    fastest = std::max(fastest, row.bytes / row.measured);
    shortest = std::min(shortest, row.measured);
  }
  return {shortest.value(), fastest.value()};
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
  return errors_of(rows, [&](const MatmulRow& row) { return matmul_seconds(gpu, row.matmul); });
}

Gpu fit_matmul(Gpu gpu, std::span<const MatmulRow> rows) {
  require_rows(rows.size(), kLeastMatmuls, "a fit of matmuls");
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
                                     {kSlowdownStart[0], 1},
                                     {kSlowdownStart[1]}},
                                    error);
    if (found.error < best.error) best = found;
  }
  return with_constants(gpu, best.values);
}

double fit_fp8_efficiency(const Gpu& gpu, std::span<const MatmulRow> rows) {
  require_rows(rows.size(), 3, "a fit of fp8 matmuls");
  Gpu tried = gpu;
  const auto error = [&](const std::vector<double>& values) {
    tried.matmul.efficiency[1] = values[0];
    return mean_error(errors(tried, rows));
  };
  return least_error({{0.8, 1}}, error).values[0];
}

std::vector<double> errors(const Gpu& gpu, std::span<const AttentionRow> rows) {
  return errors_of(rows,
                   [&](const AttentionRow& row) { return attention_seconds(gpu, row.attention); });
}

Gpu fit_attention(Gpu gpu, std::span<const AttentionRow> rows) {
  require_rows(rows.size(), 4, "a fit of attention");
  AttentionCurve& curve = gpu.attention[rows.front().attention.backward ? 1 : 0];
  // Rows of one size do not tell a tail from the rate.
  const auto [fewest, most] =
      std::ranges::minmax(rows, {}, [](const AttentionRow& row) { return row.attention.rows; });
  const bool several_sizes = most.attention.rows >= kTellsATail * fewest.attention.rows;
  const auto rates = [&] {  // the best ones at the curve's ramp; their error
    const auto set = [&](const std::vector<double>& values) {
      curve.efficiency = values[0];
      curve.streaming = values[1];
      if (several_sizes) curve.tail = values[2];
    };
    // A thousand times what memory gives is no limit any more, where rows show none.
    std::vector<Constant> constants{{0.7, 1}, {1, 1e3}};
    if (several_sizes) constants.push_back({1, kMostTail});
    const Found found = least_error(constants, [&](const std::vector<double>& values) {
      set(values);
      return mean_error(errors(gpu, rows));
    });
    set(found.values);
    return found.error;
  };
  const bool several_heads = std::any_of(rows.begin(), rows.end(), [&](const AttentionRow& row) {
    return row.attention.head_size != rows.front().attention.head_size;
  });
  // The ramp trades against the rates: searched side by side, none of the three would move.
  if (several_heads) {
    curve.head_ramp = least_error({{20, 1e4}}, [&](const std::vector<double>& values) {
                        curve.head_ramp = values[0];
                        return rates();
                      }).values[0];
  }
  (void)rates();
  return gpu;
}

std::vector<double> errors(const Gpu& gpu, std::span<const StreamRow> rows) {
  return errors_of(rows, [&](const StreamRow& row) {
    return memory_bound_seconds(gpu, row.moved, row.kernels);
  });
}

Gpu fit_streaming(Gpu gpu, std::span<const StreamRow> rows) {
  require_rows(rows.size(), 3, "a fit of memory-bound kernels");
  const auto error = [&](const std::vector<double>& values) {
    gpu.streaming = values[0];
    return mean_error(errors(gpu, rows));
  };
  gpu.streaming = least_error({{0.8, 1}}, error).values[0];
  return gpu;
}

std::vector<double> errors(const SizeCurve& curve, std::span<const SizeRow> rows) {
  return errors_of(rows,
                   [&](const SizeRow& row) { return curve.latency + row.bytes / curve.bandwidth; });
}

SizeCurve fit_by_size(std::span<const SizeRow> rows) {
  require_rows(rows.size(), 3, "a fit by size");
  const auto curve_of = [](const std::vector<double>& values) {
    return SizeCurve{Seconds(values[0]), BytesPerSecond(values[1])};
  };
  const auto [shortest, fastest] = bounds(rows);
  return curve_of(least_error({{shortest}, {fastest}}, [&](const std::vector<double>& values) {
                    return mean_error(errors(curve_of(values), rows));
                  }).values);
}

std::vector<double> errors(const MessageCurve& curve, std::span<const SizeRow> rows) {
  return errors_of(rows, [&](const SizeRow& row) { return message_seconds(curve, row.bytes); });
}

MessageCurve fit_messages(std::span<const SizeRow> rows) {
  require_rows(rows.size(), 4, "a fit of messages");
  const auto curve_of = [](const std::vector<double>& values) {
    return MessageCurve{Seconds(values[0]), BytesPerSecond(values[1]), Bytes(values[2])};
  };
  const auto [shortest, fastest] = bounds(rows);
  return curve_of(
      least_error({{shortest}, {fastest}, {1e6}}, [&](const std::vector<double>& values) {
        return mean_error(errors(curve_of(values), rows));
      }).values);
}

std::vector<double> errors(double share, std::span<const BesideRow> rows) {
  return errors_of(
      rows, [share](const BesideRow& row) { return 1 / (1 - row.flows * share) * row.alone; });
}

double fit_share(std::span<const BesideRow> rows, double most) {
  require_rows(rows.size(), 1, "a fit of compute beside others");
  const auto error = [&](double share) { return mean_error(errors(share, rows)); };
  const Found found =
      least_error({{0.1, most}}, [&](const std::vector<double>& v) { return error(v[0]); });
  return found.error < error(0) ? found.values[0] : 0;
}

std::vector<double> errors(const CollectiveCurve& curve, std::span<const CollectiveRow> rows) {
  return errors_of(rows, [&](const CollectiveRow& row) {
    return collective_seconds(curve, row.kind, row.bytes, row.ranks);
  });
}

CollectiveCurve fit_collective(std::span<const CollectiveRow> rows) {
  require_rows(rows.size(), 6, "a collective's fit");
  const auto [shortest, fastest] = bounds(rows);
  const auto error = [&](const std::vector<double>& values) {
    return mean_error(errors(curve_with(values), rows));
  };
  const bool one_group = std::ranges::all_of(
      rows, [&](const CollectiveRow& row) { return row.ranks == rows.front().ranks; });
  if (one_group) {
    // One number of ranks cannot show the cost of another rank: it is taken as 0.
    const auto of_group = [](const std::vector<double>& v) {
      return curve_with({v[0], 0, v[1], v[2], 0});
    };
    const Found found = least_error({{shortest}, {fastest}, {1e6}}, [&](const auto& values) {
      return mean_error(errors(of_group(values), rows));
    });
    return of_group(found.values);
  }
  const Found found = least_error({{shortest}, {shortest / 4}, {fastest}, {1e6}, {0.3, 4}}, error);
  return curve_with(found.values);
}

std::vector<double> errors(const Interconnect& interconnect, std::span<const NetworkRow> rows) {
  return errors_of(rows, [&](const NetworkRow& row) {
    return collective_seconds(interconnect, row.collective, row.group);
  });
}

MessageCurve fit_between_nodes(Interconnect node, std::span<const NetworkRow> rows) {
  require_rows(rows.size(), 6, "a fit of a collective between nodes");
  auto& curve = node.between_nodes[static_cast<std::size_t>(rows.front().collective.kind)];
  std::vector<SizeRow> sizes;
  for (const NetworkRow& row : rows) sizes.push_back({row.collective.bytes, row.measured});
  const auto [shortest, fastest] = bounds(std::span<const SizeRow>(sizes));
  const auto set = [&](const std::vector<double>& values) {
    curve = MessageCurve{Seconds(values[0]), BytesPerSecond(values[1]), Bytes(values[2])};
  };
  set(least_error({{shortest}, {fastest}, {1e6}}, [&](const std::vector<double>& values) {
        set(values);
        return mean_error(errors(node, rows));
      }).values);
  return *curve;
}

}  // namespace pipesim::calibration
