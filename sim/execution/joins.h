// The collectives of a sharded vocabulary as `walk` reaches them; sim/pipeline/dependencies.h says
// what they wait for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/dependencies.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Collectives of one program; Value as a visitor of `walk` has it.
template <class Value>
class Joins {
 public:
  Joins(const Program& program, Value not_yet)
      : devices_(program.placement().devices()),
        units_(is_sharded(program.vocabulary()) ? program.shape().units() : 0),
        value_(kBarriers * units_, not_yet),
        arrived_(kBarriers * units_, 0),
        results_(kBarriers * units_, devices_, not_yet) {}

  [[nodiscard]] Value of(Barrier barrier, std::uint32_t unit) const {
    return value_[at(barrier, unit)];
  }
  void set(Barrier barrier, std::uint32_t unit, Value value) { value_[at(barrier, unit)] = value; }

  // Notes the result of a device. Once all that the collective waits for has arrived: the results,
  // by device; else nothing.
  std::span<const Value> arrive(Barrier barrier, int device, std::uint32_t unit, Value result) {
    const size_t row = at(barrier, unit);
    const bool of_all = joins_all_devices(barrier);
    results_(row, of_all ? device : 0) = result;
    const size_t awaited = of_all ? devices_ : 1;
    if (++arrived_[row] < awaited) return {};
    return results_.row(row).first(awaited);
  }

 private:
  // Row of a collective of one unit.
  [[nodiscard]] size_t at(Barrier barrier, std::uint32_t unit) const {
    return static_cast<size_t>(barrier) * units_ + unit;
  }

  size_t devices_;
  size_t units_;
  std::vector<Value> value_;            // by row
  std::vector<std::uint32_t> arrived_;  // devices, by row
  Grid<Value> results_;                 // by row and device
};

}  // namespace pipesim
