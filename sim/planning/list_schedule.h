// Plans by a rule: whenever a device is free, the rule names the pass that it runs next.
//
// The list scheduler plays the pipeline in time. It enforces dependencies
// (sim/pipeline/dependencies.h), the seconds of passes and messages, and the memory limit where the
// problem has one; every pass runs once. F run in order of microbatches, and of splits; B likewise,
// the last split of a microbatch first; W in the order in which their B ran. A rule that names
// passes before they are ready fixes an order for all times; one that asks for ready passes follows
// the times.
//
// With a limit an F is ready only where it fits. With several chunks the oldest unfinished
// microbatch must also fit beside it, so that it can always go on. This is the banker's algorithm
// with microbatches as customers. Requires a problem from `for_planning`, a limit of at least one
// microbatch's bytes of every chunk of a device, and no sharded vocabulary.
//
// Deterministic: devices that are free at the same time are asked by number. At most two questions
// to the rule for each pass; O(passes log passes) beside them. Throws LogicError when nothing runs
// any more: what each device wants, and what it waits for.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The next F, B, W or BW of one of the device's chunks.
struct NextPass {
  PassKind kind = PassKind::kF;
  int chunk = 0;
  friend bool operator==(const NextPass&, const NextPass&) = default;
};

class ListScheduler;

// The state a scheduling rule may inspect when a device is idle.
class Turn {
 public:
  [[nodiscard]] const Problem& problem() const;
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] Seconds now() const;

  // Units whose F, B or W has run here (BW counts as B and as W), and whose F is still to run.
  [[nodiscard]] int ran(PassKind kind, int chunk = 0) const;
  [[nodiscard]] int forwards_left(int chunk = 0) const;
  // Units between their F and their W, in all chunks.
  [[nodiscard]] int in_flight() const;

  // True if the pass could start now: one is left, its inputs have come, and an F has memory. BW
  // also requires that the chunk owes no W.
  [[nodiscard]] bool ready(PassKind kind, int chunk = 0) const;
  // When what it waits for comes; infinite while nobody knows, or where none is left.
  [[nodiscard]] Seconds arrival(PassKind kind, int chunk = 0) const;
  // A ready pass of the first of these kinds that has one: of the oldest microbatch, and of that
  // the one furthest on its way.
  [[nodiscard]] std::optional<NextPass> first_ready(std::initializer_list<PassKind> kinds) const;

 private:
  friend class ListScheduler;
  Turn(const ListScheduler& of, int device) : of_(of), device_(device) {}

  const ListScheduler& of_;
  int device_;
};

// The device's next pass. It waits for one that is not ready, and is asked again when something
// comes for it; so also where the rule names none.
using NextPassRule = std::function<std::optional<NextPass>(const Turn&)>;

Program list_schedule(const Problem& problem, const NextPassRule& rule);

}  // namespace pipesim
