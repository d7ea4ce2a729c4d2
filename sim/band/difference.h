// How far off the difference of two schedules may be, learned from measured tables of papers.
//
// Two measured runs are a pair where paper, model and setting are the same and the schedule is
// another. With x = ln(simulated ratio) and y = ln(measured ratio) of the two, 80% of pairs have
//
//   |y - x| <= w(x),   w(x) = s (base + share |x|),   s = sqrt(1 + 1/G).
//
// base and share, neither negative, minimise the pinball loss at 80% (quantile regression, Koenker
// and Bassett 1978). A group is the n rows of one model of a paper. It counts n^0.6, as in band.h,
// shared equally by its pairs. s widens for the next group when G are known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// A measured run beside its simulation. Speeds are in any unit that a setting's runs share.
struct ScheduleRun {
  std::string paper;
  std::string model;    // with the machine it ran on: "16 GPUs"
  std::string setting;  // what else the runs of a pair share: "p=8 m=24"
  std::string schedule;
  double published_speed = 0;
  double simulated_speed = 0;
};

// "zero_bubble 1.5B": runs that are off alike.
std::string group_of(const ScheduleRun& run);

struct DifferenceBand {
  double base = 0;
  double share = 0;
  std::size_t pairs = 0;
  std::size_t groups = 0;

  // w of ln(simulated ratio).
  [[nodiscard]] double half_width(double log_ratio) const;
  // Factors on the simulated ratio of two times, between which the measured ratio lies with
  // probability kBandLevel.
  [[nodiscard]] double low(double ratio) const;
  [[nodiscard]] double high(double ratio) const;
  // True where the measured times may stand in the other order, or be equal.
  [[nodiscard]] bool tied(double ratio) const;
  // The largest ratio above 1 that is tied, less 1; infinity where all are.
  [[nodiscard]] double least_told_apart() const;
};

// The columns paper, model, setting, schedule, published_speed and simulated_speed of a CSV file
// (models/catalog/schedule_runs.csv). InputError, with file and line, for a column that is missing
// and a speed that is none.
std::vector<ScheduleRun> read_schedule_runs(const std::string& path, const Location& asked);
std::vector<ScheduleRun> parse_schedule_runs(const std::string& text, const std::string& name);

// Empty without a pair. O(pairs log pairs).
std::optional<DifferenceBand> difference_band(const std::vector<ScheduleRun>& runs);

// How many pairs of a group lie in the band that other groups make.
struct DifferenceCoverage {
  std::string group;
  std::size_t runs = 0;
  std::size_t pairs = 0;
  std::size_t held = 0;
  DifferenceBand band = {};  // of the others
};

// By group of `runs`, in order of first appearance, at last "all", whose band is that of all of
// `known`. Groups without a pair are left out. O(groups pairs log pairs).
std::vector<DifferenceCoverage> coverage_of(const std::vector<ScheduleRun>& runs,
                                            const std::vector<ScheduleRun>& known);

}  // namespace pipesim
