// Measurements of a GPU: its facts, every point with its spread, and the points left out.
//
// Times are microseconds of device time per launch. Flops and bytes are those of the point's
// formula (docs/reference/calibration.md), so rates follow from them and the median. A point is
// identified by its key: group, name and parameters in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/calibration/shapes.h"
#include "validate/calibration/statistics.h"

namespace pipesim::calibration {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// Read while the kernels of a point were running. Clocks in MHz, temperature in degrees Celsius.
struct CardState {
  double sm_clock_mhz = 0;
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  uint64_t throttle_reasons = 0;  // NVML's bit mask
};

struct Point {
  std::string group;
  std::string name;
  Parameters parameters;
  double flops = 0;
  double bytes = 0;
  TimeSummary time_us;
  int launches_per_repetition = 0;
  std::optional<CardState> state;
  std::vector<double> samples_us;

  [[nodiscard]] std::string key() const;
  [[nodiscard]] std::string parameter(std::string_view name) const;  // empty when absent
};

[[nodiscard]] std::string make_key(std::string_view group, std::string_view name,
                                   const Parameters& parameters);

// The identity under which each kind of shape is recorded.
[[nodiscard]] Point point_of(const MatmulSpec& spec);
[[nodiscard]] Point point_of(const KernelSpec& spec);
[[nodiscard]] Point point_of(const AttentionShape& shape, bool backward);
[[nodiscard]] Point point_of(const LayerSlice& slice, std::string_view what, char pass);

// The same with the shape itself, for layers that no catalogue names.
[[nodiscard]] Point point_with_shape(const LayerSlice& slice, char pass);
// A matmul beside `during`, or "nothing", to tell what it loses.
[[nodiscard]] Point disturbed_point_of(const MatmulSpec& spec, const Parameters& where,
                                       const std::string& during);

// The fact `attention` where cuDNN's fused kernels could not be had.
inline constexpr std::string_view kUnfusedAttention = "batched matmuls and softmax";

// The same fact where PyTorch took the kernel that it found best.
inline constexpr std::string_view kPickedAttention = "PyTorch's fused kernel";

struct NotMeasured {
  std::string what;
  std::string reason;
};

struct Measurements {
  // The card, its driver, the libraries, the date, in the order in which they are written.
  Parameters facts;
  std::vector<Point> points;
  std::vector<NotMeasured> not_measured;

  [[nodiscard]] std::string fact(std::string_view name) const;  // empty when absent
  [[nodiscard]] const Point* find(const std::string& key) const;
};

// Between which clocks, temperatures and powers the card worked, for `facts`; none when it was not
// read.
[[nodiscard]] Parameters conditions(const std::vector<Point>& points);

}  // namespace pipesim::calibration
