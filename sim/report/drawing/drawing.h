// The content of a picture of a schedule, for every kind of drawing. It has the passes of the first
// pipeline's middle iteration, and the pass that covers most of each column of a grid.
#pragma once

#include <limits>
#include <vector>

#include "sim/case/simulate.h"

namespace pipesim {

inline constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

// Keeps a reference to the result.
class Drawing {
 public:
  explicit Drawing(const Result& result);

  [[nodiscard]] size_t devices() const { return passes_.size(); }
  [[nodiscard]] size_t size() const;  // passes on all devices
  [[nodiscard]] double seconds() const { return end_ - begin_; }

  // The device's passes in order of time.
  [[nodiscard]] const std::vector<TaskId>& passes(size_t device) const { return passes_[device]; }
  // Seconds after the start of the iteration's first pass.
  [[nodiscard]] double start(TaskId pass) const { return timeline_.start[pass] - begin_; }
  [[nodiscard]] double end(TaskId pass) const { return timeline_.end[pass] - begin_; }

  // The device's time in `columns` equal parts: the pass that covers most of each, kNoTask where
  // none covers any of it. Ties: the first. O(passes + columns).
  [[nodiscard]] std::vector<TaskId> columns(size_t device, size_t columns) const;

 private:
  const Timeline& timeline_;
  std::vector<std::vector<TaskId>> passes_;  // by device
  double begin_ = std::numeric_limits<double>::infinity();
  double end_ = 0;
};

}  // namespace pipesim
