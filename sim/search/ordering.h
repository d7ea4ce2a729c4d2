// Facts about the order of passes in every program that costs at most a given bound.
//
// The decision is which of two passes of a device runs first. Four facts decide many pairs
// beforehand. A pass waits for its inputs. Microbatches run in their order, which loses nothing
// where they are alike. The other order would end too late for the bound, or would not fit into
// memory. The rest is for the solver.
//
// In every program, the first pass of a device is the F of microbatch 0, and it starts as soon as
// that microbatch arrives. So the start of a device is a constant. The bound on its span, or on the
// makespan, is a deadline for all of its passes.
//
// Programs with the fixed order of microbatches only, in one direction.
#pragma once

#include <limits>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/windows.h"

namespace pipesim {

struct Task {
  int device = 0;
  int stage = 0;
  Pass pass;
  double seconds = 0;
  double acquired = 0;  // at its start
  double released = 0;  // at its end
  double release = 0;   // no program starts it before
  double deadline =
      std::numeric_limits<double>::infinity();  // no program within the bound ends it after

  [[nodiscard]] double kept() const { return acquired - released; }
};

// `to` starts no earlier than `from` ends, and `latency` later.
struct Arc {
  int from = 0;
  int to = 0;
  double latency = 0;
};

class Ordering {
 public:
  // Assumes a program that takes at most `bound`, by the problem's objective, and keeps the
  // problem's limit. Times are compared to a millionth: of whole numbers, or of so many units that
  // it does not matter.
  Ordering(const Problem& problem, double bound);

  // Nothing takes so little within the limit: what is known contradicts itself. Nothing else is
  // meant for use then.
  [[nodiscard]] bool impossible() const { return impossible_; }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] double bound() const { return bound_; }
  [[nodiscard]] const std::vector<Task>& tasks() const { return tasks_; }
  [[nodiscard]] const Task& task(int i) const { return tasks_[i]; }
  [[nodiscard]] const std::vector<int>& of_device(int device) const { return of_device_[device]; }
  [[nodiscard]] const std::vector<Arc>& arcs() const { return arcs_; }
  [[nodiscard]] double device_start(int device) const;
  [[nodiscard]] double device_work(int device) const;
  // The start of the device's time: its own first pass, or that of all.
  [[nodiscard]] double origin(int device) const {
    return problem_.objective == Objective::kMakespan ? 0 : device_start(device);
  }

  [[nodiscard]] bool precedes(int i, int j) const { return before_[slot(i, j)] != 0; }
  [[nodiscard]] bool is_open(int i, int j) const {  // for two tasks of one device
    return i != j && !precedes(i, j) && !precedes(j, i);
  }
  [[nodiscard]] int number_of(int stage, PassKind kind, int microbatch) const;
  // No cost is less: the longest way through a task.
  [[nodiscard]] double least_cost() const;

 private:
  void add_tasks();
  void add_arcs();
  void close();  // transitively
  bool tighten_release(Task& task, int i);
  bool tighten_deadline(Task& task, int i);
  bool tighten_windows();  // false where some window is too short for its pass
  bool decide_by_windows();
  bool decide_by_memory();
  bool decide_by_memory_at(int j);
  bool decide(int i, int j);
  [[nodiscard]] bool in_time(int device) const;

  [[nodiscard]] size_t slot(int i, int j) const {
    return static_cast<size_t>(i) * tasks_.size() + static_cast<size_t>(j);
  }
  [[nodiscard]] int count() const { return static_cast<int>(tasks_.size()); }

  const Problem& problem_;
  double bound_;
  bool impossible_ = false;
  std::vector<Task> tasks_;
  std::vector<std::vector<int>> of_device_;
  std::vector<Arc> arcs_;
  std::vector<char> before_;
};

}  // namespace pipesim
