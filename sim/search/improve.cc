#include "sim/search/improve.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/spelling.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/search/bound_like.h"
#include "sim/search/first_come.h"
#include "sim/search/held_back.h"
#include "sim/search/planned_within.h"
#include "sim/search/refine_blocking.h"
#include "sim/search/refine_whole.h"

namespace pipesim {
namespace {

[[noreturn]] void refuse(const Case& made, const char* known, const char* what) {
  throw InfeasibleError(fmt::format("{}: {}; this one has {}", made.choice.name, known, what));
}

void refuse_what_refinement_lacks(const Case& made, const Program& program) {
  constexpr const char* kKnown = "orders of passes on devices are refined";
  if (is_sharded(program.vocabulary())) refuse(made, kKnown, "a vocabulary on every device");
  if (program.copies() != nullptr) {
    refuse(made, kKnown,
           "activations that wait on the host, which `pipesim search --offload` refines");
  }
  if (made.sync == OptimizerSync::kAsynchronous) {
    refuse(made, kKnown, "iterations that run into each other");
  }
}

// Other schedules plan, and the integer program knows, F, B and W in one pipeline.
void refuse_what_proofs_lack(const Case& made, const Program& program) {
  constexpr const char* kKnown = "orders of F, B, W and BW in one pipeline are known";
  if (program.placement().directions() > 1) refuse(made, kKnown, "several copies of the model");
  if (program.shape().splits > 1) refuse(made, kKnown, "sequence splits");
  if (program.wrap_around() != WrapAround::kEvery) {
    refuse(made, kKnown, "a way back that is not always waited for");
  }
  if (program.recomputes()) refuse(made, kKnown, "recomputation");
  if (made.blocking) refuse(made, kKnown, "transfers that hold devices");
  if (overtakes_unequally(program, made.problem)) {
    refuse(made, kKnown, "microbatches that cost unequally and overtake each other");
  }
}

std::shared_ptr<const Scenario> undisturbed(const Case& made) {
  Scenario scenario = *made.scenario;
  scenario.engine = EngineKind::kReplay;
  scenario.perturb = {};
  if (scenario.batch.unequal) scenario.batch.unequal->draw.runs = 1;
  return std::make_shared<const Scenario>(std::move(scenario));
}

Seconds time_in(const Problem& problem, const Program& program) {
  return time_of(evaluate(program, problem), problem.objective);
}

const Program& least_of(const std::vector<Program>& programs, const Problem& problem) {
  return *std::ranges::min_element(programs, {},
                                   [&](const Program& order) { return time_in(problem, order); });
}

// The shortest of the refined order, and of it and the order as it came with more blocks, whose
// blocks are refined in turn.
Program paired(const Program& came, Program refined, const Improved& so_far,
               const RefineOptions& options) {
  std::vector<Program> all;
  for (const Program* order : {&came, &std::as_const(refined)}) {
    all.push_back(with_pairs(*order, so_far.apart, so_far.limit, options.effort));
  }
  all.push_back(std::move(refined));
  std::erase_if(all, [&](const Program& order) {
    return !is_within(evaluate(order, so_far.apart).peak_activation(), so_far.limit);
  });
  const Program& least = least_of(all, so_far.apart);
  if (least.pairs().empty()) return least;
  Program moved = refine(least, so_far.apart, so_far.limit, options);
  return time_in(so_far.apart, moved) < time_in(so_far.apart, least) ? moved : least;
}

// Sets the lower bound of programs with and without fused backwards, and with blocks.
void add_bound(const Program& order, const Problem& as_it_came, Improved& result) {
  const Seconds bound = bound_like(order, result.apart, result.limit, true);
  const Seconds bound_fused = bound_like(order, as_it_came, result.limit, true);
  result.bound = std::min(bound, bound_fused);
  result.reason = reasoned_bound_like(order, bound <= bound_fused ? result.apart : as_it_came,
                                      result.limit, true)
                      .reason;
}

// True if schedules plan such orders: F, B and W in one direction.
bool is_planned(const Program& order) {
  return travels_one_way(order) && order.shape().splits == 1 && !order.recomputes();
}

// The order itself where it keeps the limit, else held back, and what else is planned within it.
std::vector<Program> starts_of(const Program& split, const Problem& problem, const Improved& so_far,
                               bool fits, bool others) {
  std::vector<Program> starts;
  if (fits) starts.push_back(split);
  if (!fits && (others || so_far.held_back)) {
    starts.push_back(held_back(split, problem, so_far.limit));
  }
  if ((fits && !others) || !is_planned(split)) return starts;
  const Problem counted = for_planning(problem);
  if (so_far.limit >= counted.device_activation()) {
    starts.push_back(first_come(counted, so_far.limit));
  }
  std::ranges::move(planned_within(problem, so_far.limit, Included::kSought),
                    std::back_inserter(starts));
  return starts;
}

// Refines one order within the limit, and joins passes where blocks take less.
Program refined(const Program& came, const Program& start, const RefineOptions& options,
                const Improved& so_far) {
  Program best = refine(start, so_far.apart, so_far.limit, options);
  if (!gains_by_pairs(so_far.apart)) return best;
  return paired(came, std::move(best), so_far, options);
}

// Refinement does not know transfers that hold devices. There its result and its start are
// simulated, and the shorter is refined by simulation.
SimulatedOrder refined_blocking(const Program& came, const Program& start,
                                const RefineOptions& options, const Improved& so_far) {
  RefineOptions half = options;
  half.effort /= 2;
  const std::vector<Program> starts{start, refined(came, start, half, so_far)};
  half.bound = bound_like(came, so_far.apart, so_far.limit, true);
  return refine_blocking(so_far.after, starts, so_far.apart, so_far.limit, half);
}

// The shortest of the orders, refined.
SimulatedOrder refined_of(const Program& came, const std::vector<Program>& starts,
                          const RefineOptions& options, const Improved& so_far) {
  const Program& start = least_of(starts, so_far.apart);
  if (so_far.after.blocking) return refined_blocking(came, start, options, so_far);
  Case made = so_far.after;
  return simulated(made, refined(came, start, options, so_far));
}

// True if BW may take less than B and W of the other problem, or hold less.
bool gains_whole(const Problem& whole, const Problem& apart) {
  const auto backward = [](const StageCost& cost) {
    return cost.backward_input + cost.backward_weight;
  };
  for (size_t vs = 0; vs < whole.stages.size(); ++vs) {
    const StageCost& stage = whole.stages[vs];
    if (backward(stage) < backward(apart.stages[vs])) return true;
    if (stage.weight_stash > stage.activation) return true;
  }
  return false;
}

// The case with another program.
Case with_program(const Case& before, Program program) {
  ScheduleChoice choice = before.choice;
  choice.program = std::make_shared<const Program>(std::move(program));
  choice.described = nullptr;
  choice.memory_limit = {};
  Case after = prepare(before.scenario, choice);
  after.microbatch_order = before.microbatch_order;
  after.problem.kind_of_unit = before.problem.kind_of_unit;
  return after;
}

// The order refined with its backwards whole, if it has no others and that may pay.
void take_whole(const Program& came, const Problem& problem, const RefineOptions& options,
                Improved& result) {
  if (!came.whole_backwards() || result.held_back || result.after.blocking) return;
  if (!gains_whole(problem, result.apart)) return;
  Case whole = with_program(result.before, refine_whole(came, problem, result.limit, options));
  const Seconds seconds = simulate(whole).report.iteration;
  if (seconds >= result.seconds_after) return;
  result.after = std::move(whole);
  result.seconds_after = seconds;
}

}  // namespace

Bytes unit_of_limit(const Case& made) { return memory_of_1f1b(for_planning(made.problem)); }

Improved improve(const Case& made, std::optional<Bytes> limit, const RefineOptions& options,
                 bool others) {
  const auto scenario = undisturbed(made);
  Improved result;
  result.before = prepare(scenario, made.choice);
  const auto program = make_program(result.before);
  refuse_what_refinement_lacks(result.before, *program);
  if (others) refuse_what_proofs_lack(result.before, *program);
  const auto split = std::make_shared<const Program>(with_backwards_apart(without_pairs(*program)));
  result.after = with_program(result.before, *split);
  const Problem problem = result.apart = with_bytes(result.after.problem);
  const Problem as_it_came = with_bytes(result.before.problem);
  const Bytes peak_apart = evaluate(*split, problem).peak_activation();
  result.peak_before = evaluate(*program, as_it_came).peak_activation();
  const bool apart = others && program->pairs().empty();
  result.limit = limit.value_or(apart ? peak_apart : result.peak_before);
  result.time_before = time_in(as_it_came, *program);
  const bool fits = is_within(peak_apart, result.limit);
  result.held_back = !is_within(result.peak_before, result.limit);
  const std::vector<Program> starts = starts_of(*split, problem, result, fits, others);
  result.seconds_before = simulate(result.before).report.iteration;
  if (starts.empty()) {
    result.after = result.before;
    result.seconds_after = result.seconds_before;
  } else {
    const SimulatedOrder order = refined_of(*program, starts, options, result);
    result.after.choice.program = order.program;
    result.seconds_after = order.iteration;
  }
  if (!others) take_whole(*program, as_it_came, options, result);
  const bool stays = !result.held_back && kRounding * result.seconds_after >= result.seconds_before;
  result.seconds_as_csv = result.seconds_after;
  if (stays) {
    if (result.before.blocking) {
      Case without_calls = with_program(result.before, *program);
      result.seconds_as_csv = simulated(without_calls, *program).iteration;
    }
    result.after = result.before;
    result.after.choice.program = program;
    result.seconds_after = result.seconds_before;
  }
  const Evaluation evaluated =
      evaluate(*result.after.choice.program, with_bytes(result.after.problem));
  result.peak_after = evaluated.peak_activation();
  result.time = result.after.blocking ? time_of(simulate(result.after).report, problem.objective)
                                      : time_of(evaluated, problem.objective);
  add_bound(*program, as_it_came, result);
  return result;
}

}  // namespace pipesim
