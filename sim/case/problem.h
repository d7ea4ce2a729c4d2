// From a scenario and one of its schedules to the Problem that the schedule plans for.
#pragma once

#include <memory>
#include <string_view>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Where the choice's schedule, or its program, puts the stages.
Placement placement_of(const ScheduleChoice& choice, int devices);

// Stage costs from the given ones (docs/reference/model.md, "Given costs"), bytes given or
// modelled; they are 0 when the scenario has neither. O(stages).
Problem make_problem(const Scenario& scenario, const ScheduleChoice& choice);

// The choice's program. InputError at the choice when the schedule does not accept the shape: why,
// and the nearest one that it does accept. InfeasibleError when it does not fit the memory limit.
std::shared_ptr<const Program> make_program(const ScheduleChoice& choice, const Problem& problem);

// The program with the copies that the choice asks for (Offload), problem.offload_chunks chunks of
// every device where it does not say which.
std::shared_ptr<const Program> offloaded(const ScheduleChoice& choice, const Program& program,
                                         const Problem& problem);

// InputError: `what` copies, and nothing says for how long.
[[noreturn]] void refuse_unknown_copies(const Location& where, std::string_view what);

// Position in the cluster of device `device` of pipeline `pipeline`. As in Megatron-LM, the
// replicas of one pipeline position stand together: rank = device * pipelines + pipeline.
int rank_of(const Scenario& scenario, int pipeline, int device);

}  // namespace pipesim
