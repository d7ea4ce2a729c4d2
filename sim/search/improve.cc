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
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"
#include "sim/planning/run_within.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/search/first_come.h"
#include "sim/search/planned_within.h"

namespace pipesim {
namespace {

void refuse_what_refinement_lacks(const Case& made, const Program& program) {
  const auto refuse = [&made](const char* what) {
    throw InfeasibleError(
        fmt::format("{}: orders of F, B, W and BW in one pipeline are known; this one has {}",
                    made.choice.name, what));
  };
  if (program.placement().directions() > 1) refuse("several copies of the model");
  if (program.shape().splits > 1) refuse("sequence splits");
  if (program.wrap_around() != WrapAround::kEvery)
    refuse("a way back that is not always waited for");
  if (is_sharded(program.vocabulary())) refuse("a vocabulary on every device");
  if (program.copies() != nullptr)
    refuse("activations that wait on the host, which `pipesim search --offload` refines");
  for (int vs = 0; vs < program.placement().virtual_stages(); ++vs) {
    if (program.recomputes(vs)) refuse("recomputation");
  }
  if (made.sync == OptimizerSync::kAsynchronous) refuse("iterations that run into each other");
  if (made.blocking) refuse("transfers that hold devices");
  if (overtakes_unequally(program, made.problem)) {
    refuse("microbatches that cost unequally and overtake each other");
  }
}

std::shared_ptr<const Scenario> undisturbed(const Case& made) {
  Scenario scenario = *made.scenario;
  scenario.engine = EngineKind::kReplay;
  scenario.perturb = {};
  if (scenario.batch.unequal) scenario.batch.unequal->draw.runs = 1;
  return std::make_shared<const Scenario>(std::move(scenario));
}

// The order with each F held back until there is room in the limit.
Program held_back(const Program& program, const Problem& problem, Bytes limit) {
  const Problem planning = for_planning(problem);
  if (limit < planning.device_activation()) {
    throw InfeasibleError(fmt::format("no order keeps {}: one microbatch takes {}", human(limit),
                                      human(planning.device_activation())));
  }
  const WithinResult run = run_within(planning, limit, program.lists(), {.hold_back = true});
  return {program.shape(), program.placement(), run.lists};
}

Seconds time_in(const Problem& problem, const Program& program) {
  return time_of(evaluate(program, problem), problem.objective);
}

const Program& least_of(const std::vector<Program>& programs, const Problem& problem) {
  return *std::ranges::min_element(programs, {},
                                   [&](const Program& each) { return time_in(problem, each); });
}

// The shortest of the refined order, and of it and the order as it came with more blocks, whose
// blocks are refined in turn.
Program paired(const Program& came, Program refined, const Improved& so_far,
               const RefineOptions& options) {
  std::vector<Program> all;
  for (const Program* each : {&came, &std::as_const(refined)}) {
    all.push_back(with_pairs(*each, so_far.apart, so_far.limit, options.effort));
  }
  all.push_back(std::move(refined));
  std::erase_if(all, [&](const Program& each) {
    return evaluate(each, so_far.apart).peak_activation() > kRounding * so_far.limit;
  });
  const Program& least = least_of(all, so_far.apart);
  if (least.pairs().empty()) return least;
  Program moved = refine(least, so_far.apart, so_far.limit, options);
  return time_in(so_far.apart, moved) < time_in(so_far.apart, least) ? moved : least;
}

// Sets the lower bound of programs with and without fused backwards, and with blocks.
void add_bound(const Problem& apart, const Problem& as_it_came, Improved& result) {
  const Seconds bound = bound_with_pairs(apart, result.limit).seconds();
  const Seconds bound_fused = bound_with_pairs(as_it_came, result.limit).seconds();
  result.bound = std::min(bound, bound_fused);
  result.reason =
      reason_of_bound_with_pairs(bound <= bound_fused ? apart : as_it_came, result.limit);
}

// The order itself where it keeps the limit, else held back, and what else is planned within it.
std::vector<Program> starts_of(const Program& split, const Problem& problem, const Improved& so_far,
                               bool fits, bool others) {
  std::vector<Program> starts;
  if (fits) starts.push_back(split);
  if (!fits && (others || so_far.held_back)) {
    starts.push_back(held_back(split, problem, so_far.limit));
  }
  if (fits && !others) return starts;
  const Problem counted = for_planning(problem);
  if (so_far.limit >= counted.device_activation()) {
    starts.push_back(first_come(counted, so_far.limit));
  }
  std::ranges::move(planned_within(problem, so_far.limit, Included::kSought),
                    std::back_inserter(starts));
  return starts;
}

}  // namespace

Bytes unit_of_limit(const Case& made) {
  return made.problem.shape.devices * for_planning(made.problem).device_activation();
}

Improved improve(const Case& made, std::optional<Bytes> limit, const RefineOptions& options,
                 bool others) {
  const auto scenario = undisturbed(made);
  Improved result;
  result.before = prepare(scenario, made.choice);
  const auto program = make_program(result.before);
  refuse_what_refinement_lacks(result.before, *program);
  const auto split = std::make_shared<const Program>(with_backwards_apart(without_pairs(*program)));
  ScheduleChoice choice = made.choice;
  choice.program = split;
  choice.described = nullptr;
  choice.memory_limit = {};
  result.after = prepare(scenario, choice);
  result.after.microbatch_order = result.before.microbatch_order;
  result.after.problem.kind_of_unit = result.before.problem.kind_of_unit;
  const Problem problem = result.apart = with_bytes(result.after.problem);
  const Problem as_it_came = with_bytes(result.before.problem);
  const Bytes peak_apart = evaluate(*split, problem).peak_activation();
  result.peak_before = evaluate(*program, as_it_came).peak_activation();
  const bool apart = others && program->pairs().empty();
  result.limit = limit.value_or(apart ? peak_apart : result.peak_before);
  result.time_before = time_in(as_it_came, *program);
  const bool fits = peak_apart <= kRounding * result.limit;
  result.held_back = result.peak_before > kRounding * result.limit;
  const std::vector<Program> starts = starts_of(*split, problem, result, fits, others);
  auto refined = program;
  if (!starts.empty()) {
    Program best = refine(least_of(starts, problem), problem, result.limit, options);
    if (gains_by_pairs(problem)) best = paired(*program, std::move(best), result, options);
    refined = std::make_shared<const Program>(std::move(best));
  }
  result.after.choice.program = refined;
  result.seconds_before = simulate(result.before).report.iteration;
  result.seconds_after = simulate(result.after).report.iteration;
  const bool stays = !result.held_back && result.seconds_after >= result.seconds_before;
  if (stays) {
    result.after = result.before;
    result.after.choice.program = refined = program;
    result.seconds_after = result.seconds_before;
  }
  const Evaluation evaluated = evaluate(*refined, stays ? as_it_came : problem);
  result.peak_after = evaluated.peak_activation();
  result.time = time_of(evaluated, problem.objective);
  add_bound(problem, as_it_came, result);
  return result;
}

}  // namespace pipesim
