#include "sim/search/held_back.h"

#include <fmt/format.h>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/held_by_devices.h"
#include "sim/execution/spelling.h"
#include "sim/planning/room.h"
#include "sim/planning/run_within.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

[[noreturn]] void refuse_limit(Bytes limit, Bytes least) {
  throw InfeasibleError(fmt::format("no order with B and W apart keeps {}: one microbatch takes {}",
                                    human(limit), human(least)));
}

bool keeps(const Program& program, const Problem& problem, Bytes limit) {
  try {
    return is_within(evaluate(program, problem).peak_activation(), limit);
  } catch (const InfeasibleError&) {
    return false;  // its devices wait for each other
  }
}

Program held_or_serial(const Program& program, const Problem& problem, Bytes limit) {
  auto held = held_by_devices(program, problem, kRounding * limit);
  if (held && keeps(*held, problem, limit)) return *std::move(held);
  Program serial = one_at_a_time(program);
  const Bytes peak = evaluate(serial, problem).peak_activation();
  if (!is_within(peak, limit)) refuse_limit(limit, peak);
  return serial;
}

}  // namespace

Program held_back(const Program& program, const Problem& problem, Bytes limit) {
  const auto spelling = spelled(program, problem);
  if (!spelling) throw InfeasibleError("copies and a sharded vocabulary are not held back");
  if (!spelling->spelling.units.empty() || program.recomputes()) {
    return held_or_serial(program, problem, limit);
  }
  const Problem planning = for_planning(problem);
  if (limit < planning.device_activation()) refuse_limit(limit, planning.device_activation());
  const WithinResult run = run_within(planning, limit, program.lists(), {.hold_back = true});
  return {program.shape(), program.placement(), run.lists};
}

}  // namespace pipesim
