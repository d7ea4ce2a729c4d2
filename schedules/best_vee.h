// The best of several plans in V-shape within a limit on activation memory, for `best`.
//
// Plans in time: the paper's rounds for ZB-V (schedules/zb_v_rounds.h) and `GreedyPlanner`, which
// is better wherever memory is plenty or very short; the best is justified
// (sim/planning/justify.h). Building blocks (schedules/vee_blocks.h), put into time once more. The
// hand-made ZB-V, V-Half, V-Min and 1F1B-V count where they fit.
//
// Up to 600 passes of a kind (`ProblemSize`), lower limits that make the planners plan otherwise
// are planned for as well, until bounds or the plans say that none can be better, so that more
// memory costs no time. Where stages keep unequal bytes these are many, and limits are rounded down
// to steps (limit_to_plan_for). All plan for messages in steps and for longer ones, since a plan
// for longer messages may be the better one, and the paper's heuristic for messages as they are
// too, within limits as they are: every plan takes what it does with those
// (tests/fidelity/monotone_test.cc counts how often shorter messages still cost time). A longer
// program within kNearEnough of the lower bound is not justified. O(passes) per plan;
// the planners' headers say why any limit that one microbatch keeps is kept and can be executed.
#pragma once

#include <memory>

#include "sim/pipeline/problem.h"
#include "sim/planning/planners.h"

namespace pipesim {

std::unique_ptr<LimitPlanner> plan_best_vee(const Problem& problem, OrderSource* source);

}  // namespace pipesim
