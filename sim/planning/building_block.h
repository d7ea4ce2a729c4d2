// Building blocks of V-shaped schedules and the schedules that repeat them. Source: Qi et al.,
// Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, sections 3 and 4, appendix A.
//
// A block says in which of six unit slots each device runs the six passes of a microbatch. One
// microbatch enters every six slots, and the lifespans in the block decide the memory. A schedule
// repeats the block, lays warm-up and cool-down anew, and fills holes as far as the block's memory
// allows. None of that depends on seconds or bytes, which rank the schedules built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/planning/block_steps.h"
#include "sim/planning/vee_orders.h"

namespace pipesim {

// Slots of F1, B1 and B0 on device 0, whose F0 is in slot 0. From one device to the next F0 and B1
// move on by `step`, over the first `steps` boundaries, then by `last_step`; F1 and B0 by -1. A W
// takes the first slot after its B that is free.
struct Block {
  std::array<int, 3> first{};
  int step = 1, last_step = 1, steps = 1;
};

// Slots of a microbatch on a device: of its F0, F1, B1 and B0.
using VeeSlots = std::array<int, 4>;

// The slots in the authors' public generator for V-Half and V-Min, counted from the first one.
VeeSlots v_half_slots(int devices, int device);
VeeSlots v_min_slots(int devices, int device);

// Every block whose step changes at one of `turns` devices, evenly spread, or at any where there
// are no more. Blocks that collide are included; the order is fixed. O(min(p, turns)).
std::vector<Block> building_blocks(int devices, int turns);

// Builds the schedules of one p and m; keeps its memory from one block to the next.
class BlockBuilder {
 public:
  BlockBuilder(int devices, int microbatches);

  // Slots of the first microbatch; false when two passes of a device collide. O(p).
  bool place(const Block& block);
  // Chunks in flight of the placed block's steady state, on the device that has most. O(p).
  [[nodiscard]] int steady_chunks() const;
  // Slot of the placed block, counted from its first one.
  [[nodiscard]] int slot(int kind, int device) const { return slot_[id(kind, device)]; }
  // Seconds between microbatches once the placed block repeats itself, as far as the second half of
  // `rounds` of them shows. O(p rounds).
  [[nodiscard]] double period(const VeeTimes& times, int rounds);

  // Builds the schedule of the placed block, with at most `limit` chunks in flight on a device.
  // False when it has more, or does not fit together. O(p max(p, m)).
  bool build(int limit);
  // The least limit that gives the last schedule. With at most as many microbatches as devices, the
  // schedule depends on the limit too.
  [[nodiscard]] int needed() const { return needed_; }
  // Kinds of the passes of a device in order; the n-th of a kind is microbatch n's.
  [[nodiscard]] std::span<const std::uint8_t> order(int device) const {
    return orders_.order(device);
  }
  [[nodiscard]] PassLists lists() const { return orders_.lists(); }
  // Nothing when the order deadlocks.
  std::optional<PlanTime> time(const VeeTimes& times) { return orders_.replay(times); }
  [[nodiscard]] int peak() const { return orders_.peak(); }  // see VeeOrders

  [[nodiscard]] static size_t id(int kind, int device) { return VeeOrders::id(kind, device); }

 private:
  void repeat();
  void find_slots_of_first_microbatch();

  int p_, m_;
  int needed_ = 0;
  int full_;               // microbatches to build with: at least 2p
  std::vector<int> slot_;  // of the placed block, by id
  VeeOrders orders_;
  CoolDown cool_down_;
  HoleFiller hole_filler_;
  std::vector<double> clock_;     // by device
  std::vector<size_t> by_slot_;   // ids in the order of a period
  std::vector<double> last_two_;  // ends, by parity of the microbatch and id
};

}  // namespace pipesim
