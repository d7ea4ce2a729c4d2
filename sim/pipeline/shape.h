// The size of a pipeline schedule: how many devices, chunks and microbatches.
#pragma once

namespace pipesim {

struct Shape {
  int devices = 1;       // p, pipeline positions
  int chunks = 1;        // v, slices of the model on one device; the most of any
  int microbatches = 1;  // m, of one iteration; with two directions both are counted
  int splits = 1;        // n, sequence splits of a microbatch

  // Units that travel the pipeline: split k of microbatch i is unit n*i+k.
  [[nodiscard]] int units() const { return microbatches * splits; }
  // A microbatch's value, for one of its units.
  template <class T>
  [[nodiscard]] T per_unit(const T& microbatch) const {
    return microbatch / splits;
  }
  friend bool operator==(const Shape&, const Shape&) = default;
};

}  // namespace pipesim
