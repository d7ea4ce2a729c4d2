// From a repeated building block to its schedule: warm up, cool down, fill holes. Each step takes
// the orders of all devices, and changes them. `chunks` is how many may be in flight on a device.
// sim/planning/building_block.h says what they come from.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/grid.h"
#include "sim/planning/vee_orders.h"

namespace pipesim {

// Up to the first B0 of a device: F0 until F1 arrives, F0 and F1 in turn, then B1, W1 and an F in
// turn, with no more in flight than before.
void lay_warm_up(VeeOrders& orders, int microbatches, int chunks);

void drop_surplus(VeeOrders& orders, int microbatches);

// With few microbatches there is memory left: the first W go last.
void delay_weights(VeeOrders& orders, int chunks);

// Lays the last B as tight as they can be. One column of B0 and B1 each runs over the devices as a
// wave; W fill the holes that are left.
class CoolDown {
 public:
  // After `squeeze`. False when the wave meets what stays.
  bool lay(VeeOrders& orders, int microbatches, int chunks);

 private:
  // The passes of a device that are taken out of its columns, to be laid anew.
  struct Taken {
    int b0 = 0, b1 = 0, w0 = 0, w1 = 0;
  };

  Taken spread(const VeeOrders& orders, int device, int most_b0, int most_b1);
  void take_weights(const VeeOrders& orders, int device, int chunks, Taken& taken);
  bool put(int column, std::uint8_t kind);
  bool lay_wave(const VeeOrders& orders, int device, const Taken& taken);
  void pay_weights(VeeOrders& orders, int device) const;

  int turn_ = 0;                       // column of the last F1 on device 0
  std::vector<std::uint8_t> columns_;  // of a device: kinds or holes
};

// Column by column: a hole takes the nearest later pass of its device that can run there and raises
// no peak.
class HoleFiller {
 public:
  // After `squeeze`.
  void fill(VeeOrders& orders, int microbatches, int chunks);

 private:
  void spread(const VeeOrders& orders, int microbatches);
  [[nodiscard]] int find_filler(const VeeOrders& orders, int device, int column);
  [[nodiscard]] bool may_run(const VeeOrders& orders, int kind, int device, int column) const;
  [[nodiscard]] bool has_room(int device, int column, int from) const;

  int microbatches_ = 0;
  int chunks_ = 0;
  int columns_ = 0;
  Grid<std::uint8_t> cells_;  // kinds or holes, by device and column
  std::vector<int> count_;    // passes run, by id
  std::vector<int> end_;      // column behind the last of them, by id
  std::vector<int> next_;     // column of the next pass, by id
  std::vector<int> held_;     // chunks in flight, by device
};

// The oldest B's W first, whichever its chunk.
void relabel_weights(VeeOrders& orders);

}  // namespace pipesim
