// The passes of every device of a V-shaped schedule in order, and when they run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"

namespace pipesim {

// Kinds of passes of a device with two chunks; the digit is the chunk. F0 and B1 travel to higher
// devices, F1 and B0 to lower ones.
enum VeeKind : std::uint8_t { kF0, kF1, kB1, kB0, kW1, kW0 };
inline constexpr int kVeeKinds = 6;
inline constexpr std::array<int, kVeeKinds> kVeeChunk{0, 1, 1, 0, 1, 0};
constexpr bool is_vee_forward(int kind) { return kind <= kF1; }
constexpr bool is_vee_weight(int kind) { return kind == kW1 || kind == kW0; }
// Change of the chunks in flight by a pass of each kind; 0 for none (kVeeKinds).
inline constexpr std::array<std::int8_t, kVeeKinds + 1> kVeeInFlight{1, 1, 0, 0, -1, -1, 0};
constexpr int vee_in_flight(int kind) { return kVeeInFlight[kind]; }
constexpr bool is_vee_backward(int kind) { return kind == kB1 || kind == kB0; }
constexpr std::uint8_t vee_weight_of(int backward) { return backward == kB1 ? kW1 : kW0; }

// Seconds of every pass, and of the message that it waits for, by device x kVeeKinds + VeeKind, and
// which time of an order counts.
struct VeeTimes {
  std::vector<double> pass;
  std::vector<double> message;
  Objective objective = Objective::kCost;
};

// The times of a problem in V-shape, in whole picoseconds: the sums of unlike passes then tie
// exactly where the times as written do.
VeeTimes vee_times(const Problem& problem);

// Keeps its memory from one order to the next.
class VeeOrders {
 public:
  // Holds up to `most` microbatches.
  VeeOrders(int devices, int most);

  [[nodiscard]] int devices() const { return p_; }
  [[nodiscard]] int length() const { return length_; }  // passes of a device
  void set_length(int length) { length_ = length; }
  // Kinds of the passes of a device in order; the n-th of a kind is microbatch n's.
  [[nodiscard]] std::span<const std::uint8_t> order(int device) const {
    return kinds_.row(device).first(length_);
  }
  [[nodiscard]] std::span<std::uint8_t> order(int device) {
    return kinds_.row(device).first(length_);
  }
  // The passes of every device.
  [[nodiscard]] PassLists lists() const;
  // Chunks in flight on the device that has most, and on one.
  [[nodiscard]] int peak() const;
  [[nodiscard]] int peak_of(int device) const;

  // A kind of pass of one device.
  [[nodiscard]] static size_t id(int kind, int device) {
    return static_cast<size_t>(device * kVeeKinds + kind);
  }
  [[nodiscard]] size_t ids() const { return source_.size(); }
  // Id of the pass of the same microbatch that is waited for, or -1.
  [[nodiscard]] int source(size_t id) const { return source_[id]; }

  // Runs every pass as soon as it can; nothing when the order deadlocks.
  std::optional<PlanTime> replay(const VeeTimes& times);
  // With passes of one column each, whose columns then stand here. False when it deadlocks.
  bool squeeze();
  // The column of a microbatch's pass, and the number of columns of a device.
  [[nodiscard]] int column(size_t id, int microbatch) const {
    return columns_end_(id, microbatch) - 1;
  }
  [[nodiscard]] int columns(int device) const { return columns_[device]; }

 private:
  template <class Clocks>
  bool run(Clocks clocks);
  template <class Clocks>
  int advance(int device, Clocks& clocks);

  int p_;
  int length_ = 0;
  std::vector<int> source_;    // by id
  Grid<std::uint8_t> kinds_;   // by device and position
  Grid<double> end_;           // by id and microbatch
  Grid<int> columns_end_;      // likewise: the column behind it
  std::vector<int> count_;     // passes run, by id
  std::vector<double> clock_;  // by device
  std::vector<int> columns_;   // likewise: columns that have been used
  std::vector<int> position_;  // likewise
};

}  // namespace pipesim
