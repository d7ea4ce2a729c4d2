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

#include <optional>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/justify.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/player.h"
#include "sim/planning/room.h"

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
    std::vector<Bytes> asked;
  };

  static Choices published_choices(double patience);
  static std::vector<Choices> all_choices();
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

  [[nodiscard]] bool wants_forward(int device);
  [[nodiscard]] bool delays_backward(int device);
  [[nodiscard]] double weights_before_forward(int device);
  // Idle seconds before the device idles more than any has so far.
  [[nodiscard]] double bearable(int d) const {
    return player_.most_idle() - player_.device(d).idle;
  }
  void fill_gap(int device, double arrival);

  [[nodiscard]] Player::Chunk& at(int d) { return player_.chunk(d, 0); }
  [[nodiscard]] double clock(int d) const { return player_.device(d).clock; }
  [[nodiscard]] bool owes_weight(int d) const { return player_.device(d).owed() > 0; }

  const Problem& problem_;
  int last_;  // device
  int microbatches_;
  std::vector<Choices> all_;
  Player player_;
  Room room_;

  Steady steady_;                             // of the run
  bool met_skip_ = false, met_fill_ = false;  // whether it came to a choice of that kind
  std::vector<int> warm_up_;                  // forwards before the first B, by device

  std::optional<Justifier> as_they_are_;  // where runs are for other messages: tells what they cost
  PlanTime least_;
  PassLists best_;
};

}  // namespace pipesim
