// Building blocks of V-shaped schedules (Qi et al., Pipeline Parallelism with Controllable Memory,
// arXiv 2405.15362, sections 3 and 4, appendix A) and the schedules that repeat them.
//
// A block says in which of six unit slots each device runs the six passes of a microbatch; one
// microbatch enters every six slots, and the lifespans in the block decide the memory. A schedule
// repeats the block, lays warm-up and cool-down anew, and fills holes as far as the memory of the
// block allows. None of that depends on seconds or bytes: those rank what has been built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipesim {

// Kinds of passes of a device with two chunks; the digit is the chunk. F0 and B1 travel to higher
// devices, F1 and B0 to lower ones.
enum VeeKind : std::uint8_t { kF0, kF1, kB1, kB0, kW1, kW0 };
inline constexpr int kVeeKinds = 6;
inline constexpr std::array<int, kVeeKinds> kVeeChunk{0, 1, 1, 0, 1, 0};
constexpr bool is_vee_forward(int kind) { return kind <= kF1; }
constexpr bool is_vee_weight(int kind) { return kind == kW1 || kind == kW0; }
// What a pass adds to the chunks in flight.
constexpr int vee_in_flight(int kind) {
  return is_vee_forward(kind) ? 1 : is_vee_weight(kind) ? -1 : 0;
}

// Slots of F1, B1 and B0 on device 0, whose F0 is in slot 0. From one device to the next F0 and B1
// move on by `step`, over the first `steps` boundaries, then by `last_step`; F1 and B0 by -1. A W
// takes the first slot after its B that is free.
struct Block {
  std::array<int, 3> first{};
  int step = 1, last_step = 1, steps = 1;
};

// Slots of a microbatch on a device: of its F0, F1, B1 and B0.
using VeeSlots = std::array<int, 4>;

// Those of the authors' public generator for V-Half and V-Min, counted from the first one.
VeeSlots v_half_slots(int devices, int device);
VeeSlots v_min_slots(int devices, int device);

// Every block, those included that collide on some device; in a fixed order. O(p).
std::vector<Block> building_blocks(int devices);

// Seconds of every pass, and of the message that it waits for, by VeeKind x devices + device.
struct VeeTimes {
  std::vector<double> pass;
  std::vector<double> message;
};

// Builds the schedules of one p and m; keeps its memory from one block to the next.
class BlockBuilder {
 public:
  BlockBuilder(int devices, int microbatches);

  // Slots of the first microbatch; false when two passes of a device collide. O(p).
  bool place(const Block& block);
  // Slot of the placed block, counted from its first one.
  [[nodiscard]] int slot(int kind, int device) const { return slot_[id(kind, device)]; }
  // Seconds between microbatches once the placed block repeats itself, as far as the second half of
  // `rounds` of them shows. O(p rounds).
  [[nodiscard]] double period(const VeeTimes& times, int rounds);

  // The schedule of the placed block, with at most `limit` chunks in flight on a device; false when
  // it has more, or does not fit together. O(p max(p, m)).
  bool build(int limit);
  // Kinds of the passes of a device in order; the n-th of a kind is microbatch n's.
  [[nodiscard]] std::span<const std::uint8_t> order(int device) const {
    return {row(device), static_cast<size_t>(length_)};
  }
  // Longest span of a device; nothing when the order deadlocks.
  std::optional<double> cost(const VeeTimes& times) { return replay(times, m_); }
  [[nodiscard]] int peak() const;  // chunks in flight on the device that has most

  [[nodiscard]] size_t id(int kind, int device) const {
    return static_cast<size_t>(kind * p_ + device);
  }

 private:
  static constexpr std::uint8_t kHole = kVeeKinds;

  void repeat();
  void lay_warm_up(int chunks);
  void drop_surplus();
  void delay_weights(int chunks);
  bool lay_cool_down(int chunks);
  bool take_back(int device, int chunks);
  void pay_weights(int device);
  void fill_holes(int chunks);
  [[nodiscard]] int find_filler(int device, int column, int chunks);
  void relabel_weights();
  [[nodiscard]] int peak_of(int device) const;
  std::optional<double> replay(const VeeTimes& times, int microbatches);
  bool squeeze(int microbatches) { return replay(unit_, microbatches).has_value(); }

  [[nodiscard]] std::uint8_t* row(int device) { return row_.data() + offset(device); }
  [[nodiscard]] const std::uint8_t* row(int device) const { return row_.data() + offset(device); }
  [[nodiscard]] size_t offset(int device) const {
    return static_cast<size_t>(device) * static_cast<size_t>(kVeeKinds * full_);
  }
  // Column of a pass after `squeeze`.
  [[nodiscard]] int column(int device, int position) const {
    return static_cast<int>(start_[offset(device) + static_cast<size_t>(position)]);
  }

  int p_, m_;
  int full_;                       // microbatches to build with: at least 2p
  int length_ = 0;                 // passes of a device now
  std::vector<int> slot_;          // of the placed block, by id
  std::vector<int> source_;        // id of the pass of the same microbatch waited for, or -1
  std::vector<std::uint8_t> row_;  // kinds, by device and position
  std::vector<double> start_;      // as row_
  std::vector<double> end_;        // by id and microbatch
  std::vector<int> count_;         // passes run, by id
  std::vector<double> clock_;      // by device
  std::vector<double> first_start_;
  std::vector<int> position_;
  VeeTimes unit_;
  std::vector<size_t> by_slot_;   // ids in the order of a period
  std::vector<double> last_two_;  // ends, by parity of the microbatch and id
  int turn_ = 0;                  // column of the last F1 on device 0
  int columns_ = 0;
  std::vector<std::uint8_t> grid_;  // kinds or holes, by device and column
  std::vector<int> next_;           // column of the next pass, by id
  std::vector<int> held_;           // chunks in flight, by device
  std::vector<std::uint8_t> queue_;
};

}  // namespace pipesim
