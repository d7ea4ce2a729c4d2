#include "sim/band/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "sim/band/band.h"
#include "sim/band/columns.h"
#include "sim/core/input_text.h"

namespace pipesim {
namespace {

constexpr double kRowsAlike = 0.4;  // as in band.cc: n rows of a group count n^(1 - kRowsAlike)

struct Pair {
  double simulated;  // |ln(ratio)|
  double off;        // |ln(measured ratio) - ln(simulated ratio)|
  double weight;
};

// Pairs of each group, without weights.
std::map<std::string, std::vector<Pair>> pairs_by_group(const std::vector<ScheduleRun>& runs) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const ScheduleRun*>> by;
  for (const ScheduleRun& run : runs) by[{run.paper, run.model, run.setting}].push_back(&run);
  std::map<std::string, std::vector<Pair>> pairs;
  for (const auto& [setting, alike] : by) {
    for (size_t i = 0; i < alike.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const ScheduleRun& a = *alike[i];
        const ScheduleRun& b = *alike[j];
        if (a.schedule == b.schedule) continue;
        const double simulated = std::log(a.simulated_speed / b.simulated_speed);
        const double measured = std::log(a.published_speed / b.published_speed);
        pairs[group_of(a)].push_back({std::abs(simulated), std::abs(measured - simulated), 1});
      }
    }
  }
  return pairs;
}

// Pairs of all groups, weighted.
std::vector<Pair> weighted_pairs(const std::vector<ScheduleRun>& runs) {
  std::map<std::string, double> rows;
  for (const ScheduleRun& run : runs) ++rows[group_of(run)];
  std::vector<Pair> all;
  for (auto& [group, pairs] : pairs_by_group(runs)) {
    for (Pair& pair : pairs) {
      pair.weight = std::pow(rows[group], 1 - kRowsAlike) / static_cast<double>(pairs.size());
      all.push_back(pair);
    }
  }
  return all;
}

// The base that makes the loss least for a share, and that loss.
struct Fit {
  double base;
  double loss;
};

Fit fit_base(const std::vector<Pair>& pairs, double share) {
  std::vector<std::array<double, 2>> rest;  // beyond the share, and its weight
  double all = 0;
  for (const Pair& pair : pairs) {
    rest.push_back({pair.off - share * pair.simulated, pair.weight});
    all += pair.weight;
  }
  std::ranges::sort(rest);
  double below = 0;
  double base = 0;
  for (const auto& [off, weight] : rest) {
    below += weight;
    base = std::max(0.0, off);
    if (below >= kBandLevel * all) break;
  }
  double loss = 0;
  for (const auto& [off, weight] : rest) {
    const double above = off - base;
    loss += weight * (above > 0 ? kBandLevel * above : (kBandLevel - 1) * above);
  }
  return {base, loss};
}

// The loss is convex in the share, so that a golden section finds its least.
double fit_share(const std::vector<Pair>& pairs) {
  constexpr double kGolden = 0.6180339887498949;
  constexpr int kSteps = 40;
  double low = 0;
  double high = 1;
  for (int step = 0; step < kSteps; ++step) {
    const double left = high - kGolden * (high - low);
    const double right = low + kGolden * (high - low);
    if (fit_base(pairs, left).loss <= fit_base(pairs, right).loss) {
      high = right;
    } else {
      low = left;
    }
  }
  const double share = (low + high) / 2;
  return fit_base(pairs, 0).loss <= fit_base(pairs, share).loss ? 0 : share;
}

enum RunColumn : size_t { kPaper, kModel, kSetting, kSchedule, kPublishedSpeed, kSimulatedSpeed };
constexpr std::array<const char*, 6> kRunColumns{"paper",    "model",           "setting",
                                                 "schedule", "published_speed", "simulated_speed"};

}  // namespace

std::string group_of(const ScheduleRun& run) { return run.paper + " " + run.model; }

double DifferenceBand::half_width(double log_ratio) const {
  return std::sqrt(1 + 1 / static_cast<double>(groups)) * (base + share * std::abs(log_ratio));
}

double DifferenceBand::low(double ratio) const { return std::exp(-half_width(std::log(ratio))); }

double DifferenceBand::high(double ratio) const { return std::exp(half_width(std::log(ratio))); }

bool DifferenceBand::tied(double ratio) const {
  return std::abs(std::log(ratio)) <= half_width(std::log(ratio));
}

double DifferenceBand::least_told_apart() const {
  const double grows = half_width(1) - half_width(0);
  if (grows >= 1) return std::numeric_limits<double>::infinity();
  return std::expm1(half_width(0) / (1 - grows));
}

std::vector<ScheduleRun> parse_schedule_runs(const std::string& text, const std::string& name) {
  std::vector<ScheduleRun> runs;
  for (const ColumnsRow& row : read_columns(text, name, kRunColumns)) {
    runs.push_back({row.fields[kPaper], row.fields[kModel], row.fields[kSetting],
                    row.fields[kSchedule], positive_number(row.fields[kPublishedSpeed], row.where),
                    positive_number(row.fields[kSimulatedSpeed], row.where)});
  }
  return runs;
}

std::vector<ScheduleRun> read_schedule_runs(const std::string& path, const Location& asked) {
  return parse_schedule_runs(read_input(path, asked), path);
}

std::optional<DifferenceBand> difference_band(const std::vector<ScheduleRun>& runs) {
  const std::vector<Pair> pairs = weighted_pairs(runs);
  if (pairs.empty()) return std::nullopt;
  const double share = fit_share(pairs);
  return DifferenceBand{fit_base(pairs, share).base, share, pairs.size(),
                        pairs_by_group(runs).size()};
}

std::vector<DifferenceCoverage> coverage_of(const std::vector<ScheduleRun>& runs,
                                            const std::vector<ScheduleRun>& known) {
  std::vector<std::string> groups;
  for (const ScheduleRun& run : runs) {
    if (std::ranges::find(groups, group_of(run)) == groups.end()) groups.push_back(group_of(run));
  }
  const auto pairs = pairs_by_group(runs);
  std::vector<DifferenceCoverage> coverage;
  DifferenceCoverage all{.group = "all", .band = difference_band(known).value_or(DifferenceBand{})};
  for (const std::string& group : groups) {
    std::vector<ScheduleRun> others;
    std::ranges::copy_if(known, std::back_inserter(others),
                         [&group](const ScheduleRun& run) { return group_of(run) != group; });
    const auto band = difference_band(others);
    if (!band || !pairs.contains(group)) continue;
    DifferenceCoverage own{.group = group, .band = *band};
    own.runs = static_cast<size_t>(
        std::ranges::count(runs, group, [](const ScheduleRun& run) { return group_of(run); }));
    for (const Pair& pair : pairs.at(group)) {
      ++own.pairs;
      own.held += pair.off <= band->half_width(pair.simulated) ? 1U : 0U;
    }
    all.runs += own.runs;
    all.pairs += own.pairs;
    all.held += own.held;
    coverage.push_back(std::move(own));
  }
  if (!coverage.empty()) coverage.push_back(std::move(all));
  return coverage;
}

}  // namespace pipesim
