// The best of several plans in V-shape within a limit on activation memory, for `best`.
//
// Plans in time: the paper's rounds for ZB-V (schedules/zb_v_rounds.h) and `GreedyPlanner`, which
// is better wherever memory is plenty or very short. The best is justified
// (sim/planning/justify.h). Building blocks (schedules/vee_blocks.h), put into time once more. The
// hand-made ZB-V, V-Half, V-Min and 1F1B-V count where they fit.
//
// Up to 600 passes of a kind (`ProblemSize`), planners also plan for every lower limit that changes
// their plan. They end when bounds or plans show that none can be better. So more memory costs no
// time. Stages of unequal bytes have many such limits, which are rounded down to steps
// (limit_to_plan_for).
//
// All plan for messages in steps and for longer ones, since a plan for longer messages may be the
// better one. The paper's heuristic also plans for messages and limits as they are. Every plan is
// timed with the given messages (tests/fidelity/monotone_test.cc counts how often shorter messages
// still cost time). A longer program within kNearEnough of the lower bound is not justified.
// O(passes) per plan; the planners' headers prove that any limit of at least one microbatch is kept
// and can be executed.
#pragma once

#include <memory>

#include "sim/pipeline/problem.h"
#include "sim/planning/planners.h"

namespace pipesim {

std::unique_ptr<LimitPlanner> plan_best_vee(const Problem& problem, OrderSource* source);

}  // namespace pipesim
