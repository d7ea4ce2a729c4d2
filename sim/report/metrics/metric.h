// A metric: its name, unit, words, digits and band, and how a result is asked for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/case/simulate.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

enum class MetricUnit : std::uint8_t {
  kSeconds,
  kShare,  // 0 to 1; people read percent
  kRatio,
  kBytes,
  kPerSecond,
  kTeraflops,  // a second
  kCount,
  kFlag,  // 0 or 1; true or false in JSON
  kFit,   // MemoryFit, by its name in JSON and CSV
  kDays,
  kGpuHours,
  kMoney,  // in the currency of the price that was given
};
inline constexpr std::array<std::string_view, 12> kMetricUnitNames{
    "s",     "share", "ratio", "B",    "1/s",       "TFLOP/s",
    "count", "flag",  "fit",   "days", "GPU-hours", "money"};
enum class Better : std::int8_t { kLess = -1, kNeither = 0, kMore = 1 };

// How a metric moves with an iteration's seconds, so that their band is one of it too.
enum class BandRule : std::uint8_t { kNone, kAsSeconds, kAsRate };
inline constexpr std::array<std::string_view, 3> kBandRuleNames{"none", "seconds", "rate"};

struct Metric {
  std::string_view name;        // of the column and of the JSON key; a dimension is its last word
  std::string_view label;       // in tables
  std::string_view title = {};  // on axes; empty: the label
  MetricUnit unit = MetricUnit::kSeconds;
  Better better = Better::kNeither;
  BandRule band = BandRule::kNone;
  // A number of all GPUs together: runs of different sizes are not ranked by it.
  bool of_all_gpus = false;
  int digits = 0;  // decimals, of a share in percent; times and sizes have their own
  // Nothing where it does not apply. None: of a plan or a search, not of one run.
  std::optional<double> (*of)(const Scenario& scenario, const Result& result) = nullptr;
  std::string_view definition = {};

  [[nodiscard]] std::string_view axis() const { return title.empty() ? label : title; }
};

}  // namespace pipesim
