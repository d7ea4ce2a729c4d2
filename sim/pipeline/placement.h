// Where the slices of the model stand: a bijection between (device, chunk) and virtual stages. A
// device's chunks are numbered from 0; devices may hold unequal numbers of them.
//
// Virtual stages are numbered along the way of a microbatch: its forward goes from `upstream(vs)`
// to `vs`, its backward the other way. Only here is a stage number computed; schedules and engines
// ask. Sources: looped placement, Narayanan et al. 2021 (section 2.2); V-shape, Zero Bubble (arXiv
// 2401.10241, section 6) and Controllable Memory (arXiv 2405.15362); wave, Hanayo (arXiv
// 2308.15762); two directions, Chimera (arXiv 2107.06925) and DualPipe.
#pragma once

#include <span>
#include <vector>

#include "sim/core/grid.h"

namespace pipesim {

class Placement {
 public:
  // Chunk c of device d is virtual stage c*p+d; one chunk is the plain linear pipeline.
  static Placement looped(int devices, int chunks);
  // Two chunks; device d holds stages d and 2p-1-d, so that device 0 holds the first and the last.
  static Placement vee(int devices);
  // The stages run down the devices and back up. Chunk c of device d is virtual stage c*p+d for
  // even c, c*p+p-1-d for odd c. Two chunks are `vee`.
  static Placement wave(int devices, int chunks);
  // Two copies of the model in opposite directions. Virtual stages 0..p-1 on devices 0..p-1 carry
  // the first half of the microbatches; p..2p-1 on devices p-1..0 carry the second. There is no
  // edge from p-1 to p.
  static Placement bidirectional(int devices);
  // Stage s on `device_of[s]`; every device up to the last that is named holds at least one (throws
  // LogicError otherwise). The chunks of a device are numbered in stage order. The stages of
  // several copies of the model follow each other. Each copy carries an equal share of the
  // microbatches.
  static Placement custom(std::span<const int> device_of, int copies = 1);

  [[nodiscard]] int devices() const { return devices_; }
  // Chunks of a device; the most of any. Only custom placements have devices with fewer.
  [[nodiscard]] int chunks(int device) const { return chunks_of_[device]; }
  [[nodiscard]] int chunks() const { return chunks_; }
  [[nodiscard]] bool even() const { return virtual_stages() == devices_ * chunks_; }
  [[nodiscard]] int directions() const { return directions_; }
  // A device's value, for one of the chunks that a microbatch passes there. With two directions it
  // passes half of them, which then are the whole device.
  template <class T>
  [[nodiscard]] T per_chunk(int device, const T& value) const {
    return value / (static_cast<double>(chunks(device)) / directions_);
  }
  [[nodiscard]] int virtual_stages() const { return static_cast<int>(device_of_.size()); }
  [[nodiscard]] int model_stages() const { return model_stages_; }

  [[nodiscard]] int virtual_stage(int device, int chunk) const { return stage_of_(device, chunk); }
  [[nodiscard]] int device(int vs) const { return device_of_[vs]; }
  [[nodiscard]] int chunk(int vs) const { return chunk_of_[vs]; }
  // The stage that this chunk of the same device is; `vs` where the device has no such chunk.
  [[nodiscard]] int beside(int vs, int chunk) const {
    return chunk < chunks(device(vs)) ? virtual_stage(device(vs), chunk) : vs;
  }
  // The slice of the model that `vs` holds a copy of, counted in forward order.
  [[nodiscard]] int model_stage(int vs) const { return vs % model_stages(); }
  // Neighbours on the way of a microbatch; -1 where it enters or turns round.
  [[nodiscard]] int upstream(int vs) const { return upstream_[vs]; }
  [[nodiscard]] int downstream(int vs) const { return downstream_[vs]; }
  // The units (of `units` in all) that travel through `vs`: [first_unit, end_unit).
  [[nodiscard]] int first_unit(int vs, int units) const {
    return directions_ == 1 ? 0 : vs / model_stages_ * units / directions_;
  }
  [[nodiscard]] int end_unit(int vs, int units) const {
    return directions_ == 1 ? units : (vs / model_stages_ + 1) * units / directions_;
  }
  friend bool operator==(const Placement&, const Placement&) = default;

 private:
  Placement(std::span<const int> device_of, int devices, int directions);

  int devices_;
  int chunks_ = 0;
  int directions_;
  int model_stages_;
  std::vector<int> device_of_, chunk_of_;   // by virtual stage
  std::vector<int> upstream_, downstream_;  // likewise: walks ask for every pass
  std::vector<int> chunks_of_;              // by device
  Grid<int> stage_of_;                      // by device and chunk; -1 beyond what the device holds
};

}  // namespace pipesim
