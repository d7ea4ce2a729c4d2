// Shortens a program by justification. Its passes are pushed as late as they can go without a later
// end, the last first. Then they are pushed as early as they can go, the first first. A pass goes
// into any gap of its device that it reaches, so that each push also changes orders. Pushes go on
// as long as they shorten.
//
// Sources: Li and Willis, An iterative scheduling technique for resource-constrained project
// scheduling, European Journal of Operational Research 56 (1992) 370-379; Valls, Ballestin and
// Quintanilla, Justification and RCPSP: a technique that pays, the same 165 (2005) 375-386. Here
// devices are machines. F takes activation memory at its start, B and W give it back at their end.
// Seen from the end of time W and B take it and F gives it back, so that one rule pushes both ways.
// Each pass always has a place: behind those that were before it, all of which are placed.
//
// For programs of F, B and W (no splits, copies, sharded vocabulary or second direction), of any
// placement. O(passes x (1 + gaps that a pass looks at)) per push. Deterministic.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "sim/core/grid.h"
#include "sim/core/units.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/room.h"

namespace pipesim {

class Justifier {
 public:
  explicit Justifier(const Problem& problem);

  // Before a run.
  void set_limit(Bytes limit) { room_.set_limit(limit); }
  // The most that a run since then wanted and had room for. With any limit from there on up to the
  // one set, all runs would have been the same.
  [[nodiscard]] Bytes asked() const { return room_.asked(); }

  // The time of the justified lists: at most that of `lists`. Requires executable lists of F, B and
  // W that keep the limit.
  PlanTime run(const PassLists& lists);
  // Stores the lists of the last run.
  void save(PassLists& lists) const;

  // The time of the lists as they are, whatever the limit.
  PlanTime time(const PassLists& lists);

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  enum Direction { kEarly, kLate };
  // A row is the passes of one kind on a virtual stage; -1: none.
  struct Wait {
    int row = -1;
    double lag = 0;
  };
  // In one direction, in which time runs forward.
  struct Row {
    double seconds = 0;
    double acquired = 0, released = 0;
    std::array<Wait, 2> after;
  };
  struct Item {
    int row = -1, microbatch = -1;
    friend bool operator==(const Item&, const Item&) = default;
  };
  // Passes of a device with no gap between them that any pass of it fits into.
  struct Stretch {
    size_t first = 0;  // of what is placed
    double start = 0, end = 0;
    double peak = 0;  // bytes held
    double held = 0;  // after it
  };

  void add(const Problem& problem, int vs);
  void wait_for(int row, int source, double lag);
  void load(const PassLists& lists);
  [[nodiscard]] PlanTime time() const;
  void push_early();
  void push_late(double most);
  template <Direction direction>
  void place_all();
  // Takes the passes of all devices in their order: of each device from `from_` on, `place(device,
  // row, item, earliest start)` puts it somewhere and returns its end.
  template <Direction direction, class Place>
  void push(const Place& place);
  template <Direction direction, class Place>
  void advance(int device, const Place& place);
  double place(int device, const Row& row, const Item& item, double earliest);
  void insert(int device, size_t at, const Item& item, const Stretch& one);

  Placement placement_;
  int microbatches_;
  Objective objective_;
  Room room_;
  std::array<std::vector<Row>, 2> rows_;         // by direction
  std::vector<int> device_of_;                   // by row
  std::vector<std::vector<Item>> order_, best_;  // by device, in time
  std::vector<std::vector<Item>> placed_;        // likewise, of a push
  std::vector<std::vector<Stretch>> stretches_;  // likewise
  std::vector<double> from_;                     // by device, the earliest start
  Grid<double> ends_;          // by row and microbatch; kNever before the pass is placed
  std::vector<size_t> next_;   // by device, in its order
  std::vector<Item> missing_;  // by device, what its next pass waits for
  std::vector<double> slack_;  // by device, the longest gap that no pass fits into
  std::vector<int> ready_;     // devices
};

}  // namespace pipesim
