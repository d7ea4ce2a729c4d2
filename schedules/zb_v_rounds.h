// The paper's heuristic for ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241,
// section 6). `zb-v` has it as published; it is one of the plans that `best` compares.
//
// Warm-up: as many F0 as fit before the first F1 comes back, then F0 and F1 until every device has
// run about as many. Then rounds of one B and one F per device, which alternates between its chunks
// as far as its neighbours let it. A W fills what its device would wait, or gives back the memory
// that an F needs.
//
// A run that does not give up ends in an executable program that keeps the limit. The limit must be
// at least one microbatch's bytes on any device. The two conditions of sim/planning/greedy.h
// (`fits`) hold back an F. With them there is always a pass that may run, and a round runs a B or F
// wherever one may run. O(passes), no allocation in `run`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "schedules/order_within.h"
#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/player.h"
#include "sim/planning/room.h"

namespace pipesim {

// Where a W runs although it delays the next pass: the device would otherwise idle most of all.
struct RoundsChoices {
  bool delay_forward;
  bool delay_backward;  // of chunk 1; that of chunk 0 it always may
};

class RoundsPlanner {
 public:
  explicit RoundsPlanner(const Problem& problem);

  // Before a run. Requires at least what one microbatch keeps on any device. Plays what all runs
  // within the limit have in common.
  void set_limit(Bytes limit);
  // The most that a run since then wanted and had room for. With any limit from there on up to the
  // one set, all runs would have been the same.
  [[nodiscard]] Bytes asked() const { return room_.asked(); }

  // The time of the program as it is executed. Gives up, and returns infinity, once it cannot take
  // less than `most`.
  PlanTime run(const RoundsChoices& choices, const PlanTime& most);
  // True if the last run met no choice that `others` would take differently: theirs would be the
  // same.
  [[nodiscard]] bool same_with(const RoundsChoices& others) const;
  // Idle seconds that each device may have at least, for the next runs.
  void allow(std::vector<double> idle) { allowed_ = std::move(idle); }
  [[nodiscard]] std::vector<double> slack() const;
  [[nodiscard]] PassLists& lists() { return player_.lists(); }

 private:
  void warm_up();
  void even_out();
  bool run_backwards();
  bool run_forwards();

  bool fits(int device, int chunk);
  bool can_forward(int device, int chunk);
  [[nodiscard]] bool can_backward(int device, int chunk) const;
  int wanted_forward(int device);
  [[nodiscard]] int wanted_backward(int device) const;

  void fill_gap(int device, double arrival, bool delay, bool* met);
  void make_room(int device, double bytes);
  void run_forward(int device, int chunk);
  void run_backward(int device, int chunk);
  // It and its neighbours may have something to run again.
  void unstick(int device) { std::fill_n(stuck_.begin() + device, 3, std::uint8_t{0}); }

  [[nodiscard]] Player::Chunk& at(int d, int chunk) { return player_.chunk(d, chunk); }
  [[nodiscard]] const Player::Chunk& at(int d, int chunk) const { return player_.chunk(d, chunk); }

  int last_;  // device
  int microbatches_;
  Room room_;
  Player player_;
  // All up to the first B of every device: no W can run before, so that nothing is chosen.
  Player start_;
  RoundsChoices choices_{};
  bool met_forward_ = false, met_backward_ = false;  // whether the last run came to a choice
  std::vector<double> allowed_;
  std::vector<int> wanted_;
  std::vector<std::uint8_t> stuck_;  // nothing to run until it or a neighbour has run something
};

// The best of the paper's four choices. Each runs again with its devices' idle times, as long as
// that shortens it. The authors' public code does so; ties go to its first shortest plan.
class PublishedRounds {
 public:
  explicit PublishedRounds(const Problem& problem)
      : no_idle_(problem.shape.devices, 0), rounds_(problem) {}

  // Gives up runs that take `most` or more. Requires what RoundsPlanner::set_limit does.
  OrderWithin plan(Bytes limit, const PlanTime& most = {});
  // See RoundsPlanner; of the last plan.
  [[nodiscard]] Bytes asked() const { return rounds_.asked(); }

 private:
  static constexpr std::array<RoundsChoices, 4> kChoices{
      {{true, true}, {false, true}, {true, false}, {false, false}}};

  std::vector<double> no_idle_;
  RoundsPlanner rounds_;
};

}  // namespace pipesim
