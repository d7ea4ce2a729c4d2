// The heuristic of Zero Bubble's automatic schedule (Qi et al., arXiv 2401.10241, section 3.1)
// within a limit on activation memory. `zb` has it as published, `best` with more choices.
//
// Warm-up: as many F as fit in memory and before the first B. Then one F and one B in turn: a W
// fills its device's wait, or gives back the memory that an F needs. The hand-made orders of the
// same kind (1F1B with B and W apart, ZB-H1, ZB-H2) are runs with other warm-ups. In them a W waits
// until its device owes a number of W. O(p m) per run, whatever stages cost.
//
// Every run that does not give up ends in a program that can be executed and keeps the limit:
//   - no device ever runs more F than the one upstream, and each has run F i before B i is due;
//   - a device never has more microbatches between F and B than at the end of its warm-up. So there
//     is room for one more F, and for what a B acquires, as soon as the owed W have run.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/core/grid.h"
#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/justify.h"
#include "sim/planning/plan_time.h"

namespace pipesim {

class ZbPlanner {
 public:
  explicit ZbPlanner(const Problem& problem);

  // Both require that one microbatch fits on every device.
  //
  // The first best of the paper's eight hyperparameters, in the order of the authors' public code.
  PassLists published(Bytes limit);
  // The first best of all choices within the limit and within lower ones: of short programs all, of
  // others the rungs (sim/planning/memory_ladder.h). Limits that no run can gain by are left out.
  // Small problems are planned again for messages in steps (schedules/order_within.h).
  PassLists best(Bytes limit);

 private:
  // Choices that the runs try in turn: the paper's hyperparameters, and the hand-made orders.
  struct WarmUp {
    double patience = 0;  // of an F: a gap before the first B up to which none fills it
    int ahead = 0;  // hand-made: F that each device is ahead of the next; 0: as patience has it
  };
  struct Steady {
    bool skip_forwards = false;   // a device two F ahead of the next may skip one that delays a B
    bool fill_every_gap = false;  // a W that delays the next pass even where another idles more
    int owed = -1;  // hand-made: so many W per device before it owes device d; -1: W fill gaps
  };
  struct Choices {
    WarmUp warm_up;
    std::vector<Steady> steady;
    // The most that fitted in the last run of each. Within any higher limit that run would be the
    // same.
    std::vector<double> asked;
  };

  // One device: what its passes cost, and how far it has come.
  struct Device {
    double forward = 0, backward = 0, weight = 0;
    double to_upstream = 0, to_downstream = 0;
    double activation = 0, weight_stash = 0;
    double work = 0;  // of all its passes
    double way = 0;   // of a makespan: of the first F to it

    int f = 0, b = 0, w = 0;  // passes run, each kind in order of microbatches
    double clock = 0;
    double idle = 0;  // since the first F
    double first_start = 0;
    double backward_end = 0;

    void reset() {
      f = b = w = 0;
      clock = idle = first_start = 0;
    }
    [[nodiscard]] bool owes_weight() const { return w < b; }
    // Bytes that B acquires where W needs more than F left.
    [[nodiscard]] double growth() const { return std::max(0.0, weight_stash - activation); }
    // From the counts, so that rounding does not pile up.
    [[nodiscard]] double held() const {
      return f * activation - b * (activation - weight_stash) - w * weight_stash;
    }
  };

  static Choices published_choices(double patience);
  static std::vector<Choices> all_choices();
  void set_messages(const Problem& problem);
  void try_limits(Bytes limit);
  // True if the last run met no choice that `others` would take differently: theirs would be the
  // same.
  [[nodiscard]] bool same_with(const Steady& others) const;
  Bytes try_all(Bytes limit);
  PlanTime run(const Steady& steady);
  void start();
  void count_warm_up(const WarmUp& choice);
  [[nodiscard]] int count_forwards(int device, double arrival, const WarmUp& choice);
  void run_forwards();
  void run_backwards();

  [[nodiscard]] bool fits(double bytes);
  [[nodiscard]] bool wants_forward(int device);
  [[nodiscard]] bool delays_backward(int device);
  [[nodiscard]] double weights_before_forward(const Device& device);
  [[nodiscard]] double forward_arrival(int device) const;
  [[nodiscard]] double backward_arrival(int device) const;
  void fill_gap(int device, double arrival);

  void run_forward(int device);
  void run_backward(int device);
  void run_weight(int device);
  void append(int device, PassKind kind, int microbatch, double arrival, double seconds);

  [[nodiscard]] Device& at(int d) { return devices_[d]; }
  [[nodiscard]] const Device& at(int d) const { return devices_[d]; }

  const Problem& problem_;
  int last_;  // device
  int microbatches_;
  std::vector<Choices> all_;
  std::vector<Device> devices_;

  Steady steady_;  // of the run
  double limit_ = 0;
  double asked_ = 0;  // most that was found to fit
  PlanTime most_;     // at which the run is given up
  // True if the run takes at least as much in time, and in span; true if it is given up.
  bool takes_time_ = false, takes_span_ = false;
  bool hopeless_ = false;
  bool met_skip_ = false, met_fill_ = false;  // whether it came to a choice of that kind
  std::vector<int> warm_up_;                  // forwards before the first B, by device
  Grid<double> forward_end_;                  // by device and microbatch
  double most_idle_ = 0;                      // of all devices
  PassLists lists_;

  std::optional<Justifier> as_they_are_;  // where runs are for other messages: tells what they cost
  PlanTime least_;
  PassLists best_;
};

}  // namespace pipesim
