// From a problem to the program of a choice: its schedule's plan, or the program that was read,
// with recomputation and copies added.
#pragma once

#include <memory>
#include <string_view>

#include "sim/case/case.h"
#include "sim/case/reuse.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// The choice's program. InputError at the choice when the schedule does not accept the shape: why,
// and the nearest one that it does accept. InfeasibleError when it does not fit the memory limit.
// `reuse` has it, where the order is fixed, if one of the shape was made before.
std::shared_ptr<const Program> make_program(const ScheduleChoice& choice, const Problem& problem,
                                            Reuse* reuse = nullptr);
inline std::shared_ptr<const Program> make_program(const Case& made, Reuse* reuse = nullptr) {
  return make_program(made.choice, made.problem, reuse);
}

// The same before copies that the choice asks for (Offload): with those alone that its schedule, or
// what was read, plans by itself.
std::shared_ptr<const Program> program_on_device(const ScheduleChoice& choice,
                                                 const Problem& problem, Reuse* reuse = nullptr);

// The program with the copies that the choice asks for, problem.offload_chunks chunks of every
// device where it does not say which. InputError where nothing says how long they take.
std::shared_ptr<const Program> offloaded(const ScheduleChoice& choice, const Program& program,
                                         const Problem& problem);

// InputError at the choice: its schedule refuses this shape, and takes the nearest.
[[noreturn]] void refuse_shape(const ScheduleChoice& choice, const Shape& shape,
                               const Refusal& refusal);

// InputError: `what` copies, and nothing says for how long.
[[noreturn]] void refuse_unknown_copies(const Location& where, std::string_view what);

}  // namespace pipesim
