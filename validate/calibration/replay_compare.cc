#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "validate/calibration/replay_clock.h"
#include "validate/calibration/replay_report.h"

namespace pipesim::calibration {
namespace {

using Interval = std::pair<double, double>;

struct Sum {
  int count = 0;
  double seconds = 0;
};

struct Totals {
  double total = 0;
  double busy = 0;
  std::array<Sum, kPassKinds> passes;
  std::array<Sum, kLanes> copies;        // of the copy lanes
  std::array<double, kLanes> overlap{};  // seconds of copies during which a pass runs
  double peak_bytes = 0;
  // Rounding in a row without a gap counts as no idle time.
  [[nodiscard]] double idle() const {
    constexpr double kRounding = 1e-12;
    const double rest = total - busy;
    return rest > kRounding * total ? rest : 0;
  }
};

double overlap_of(const Interval& copy, const std::vector<Interval>& passes) {
  double sum = 0;
  // Passes follow each other: the first that ends after the copy's start.
  auto pass = std::ranges::upper_bound(passes, copy.first, {}, &Interval::second);
  for (; pass != passes.end() && pass->first < copy.second; ++pass) {
    sum += std::min(pass->second, copy.second) - std::max(pass->first, copy.first);
  }
  return sum;
}

double peak_of(const Row& row, const Executed& executed) {
  std::vector<std::pair<double, double>> changes;  // time, bytes: releases sort first
  for (std::size_t number = 0; number < row.actions.size(); ++number) {
    for (const std::uint32_t block : row.actions[number].acquires) {
      changes.emplace_back(executed.start[number], row.blocks[block]);
    }
    for (const std::uint32_t block : row.actions[number].releases) {
      changes.emplace_back(executed.end[number], -row.blocks[block]);
    }
  }
  std::ranges::sort(changes);
  double held = 0;
  double peak = 0;
  for (const auto& change : changes) peak = std::max(peak, held += change.second);
  return peak;
}

Totals totals_of(const Row& row, const Executed& executed) {
  Totals totals;
  std::vector<Interval> passes;
  for (std::size_t number = 0; number < row.actions.size(); ++number) {
    const Action& action = row.actions[number];
    if (action.lane != Lane::kCompute) continue;
    passes.emplace_back(executed.start[number], executed.end[number]);
    const double seconds = executed.end[number] - executed.start[number];
    totals.busy += seconds;
    Sum& sum = totals.passes[static_cast<std::size_t>(action.work.pass)];
    ++sum.count;
    sum.seconds += seconds;
  }
  if (!passes.empty()) totals.total = passes.back().second - passes.front().first;
  for (std::size_t number = 0; number < row.actions.size(); ++number) {
    const auto lane = static_cast<std::size_t>(row.actions[number].lane);
    if (row.actions[number].lane == Lane::kCompute) continue;
    const Interval copy{executed.start[number], executed.end[number]};
    ++totals.copies[lane].count;
    totals.copies[lane].seconds += copy.second - copy.first;
    totals.overlap[lane] += overlap_of(copy, passes);
  }
  totals.peak_bytes = peak_of(row, executed);
  return totals;
}

Executed simulated(const Row& row, Arrivals arrivals) {
  if (arrivals == Arrivals::kAtStart) {
    ClockDevice clock;
    return replay(row, arrivals, clock);
  }
  Executed executed;
  for (const Action& action : row.actions) {
    executed.start.push_back(action.start);
    executed.end.push_back(action.end);
  }
  return executed;
}

void add_copies(Comparison& comparison, Lane which, const Totals& simulated,
                const Totals& measured) {
  const auto lane = static_cast<std::size_t>(which);
  const std::string name = which == Lane::kCopyOut ? "copies out" : "copies back";
  if (simulated.copies[lane].count == 0) return;
  const auto share = [lane](const Totals& of) {
    return of.copies[lane].seconds > 0 ? of.overlap[lane] / of.copies[lane].seconds : 1;
  };
  comparison.lines.push_back(
      {name, "s", simulated.copies[lane].seconds, measured.copies[lane].seconds});
  comparison.lines.push_back({name + " overlapped", "1", share(simulated), share(measured)});
}

}  // namespace

double Comparison::Line::error() const {
  if (unit == "1" || simulated == 0) return measured - simulated;
  return measured / simulated - 1;
}

const Comparison::Line* Comparison::find(const std::string& quantity) const {
  const auto found = std::ranges::find(lines, quantity, &Line::quantity);
  return found == lines.end() ? nullptr : &*found;
}

Comparison compare(const Row& row, Arrivals arrivals, const Executed& measured) {
  const Totals expected = totals_of(row, simulated(row, arrivals));
  const Totals got = totals_of(row, measured);
  Comparison comparison{row.schedule, row.device, arrivals, {}};
  comparison.lines = {{"total", "s", expected.total, got.total},
                      {"busy", "s", expected.busy, got.busy},
                      {"idle", "s", expected.idle(), got.idle()}};
  for (std::size_t kind = 0; kind < kPassKinds; ++kind) {
    const Sum& sum = expected.passes[kind];
    if (sum.count == 0) continue;
    comparison.lines.push_back({"mean " + std::string(to_text(static_cast<PassKind>(kind))), "s",
                                sum.seconds / sum.count,
                                got.passes[kind].seconds / got.passes[kind].count});
  }
  add_copies(comparison, Lane::kCopyOut, expected, got);
  add_copies(comparison, Lane::kCopyIn, expected, got);
  if (!row.blocks.empty()) {
    comparison.lines.push_back({"peak memory", "bytes", expected.peak_bytes, got.peak_bytes});
    if (measured.allocator_peak) {
      comparison.lines.push_back(
          {"peak of the allocator", "bytes", expected.peak_bytes, *measured.allocator_peak});
    }
  }
  return comparison;
}

Comparison replay_and_compare(const Row& row, Arrivals arrivals, int runs, ReplayDevice& device) {
  (void)replay(row, arrivals, device);
  std::vector<std::pair<double, Executed>> executed;
  for (int run = 0; run < runs; ++run) {
    Executed one = replay(row, arrivals, device);
    const double total = totals_of(row, one).total;
    executed.emplace_back(total, std::move(one));
  }
  const auto middle = executed.begin() + (runs - 1) / 2;
  std::ranges::nth_element(executed, middle, {}, &std::pair<double, Executed>::first);
  return compare(row, arrivals, middle->second);
}

}  // namespace pipesim::calibration
