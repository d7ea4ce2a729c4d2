// Refinement in a search: the part of Search that refines the best of every family.
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>
#include <vector>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/schedule.h"
#include "sim/search/bound_like.h"
#include "sim/search/first_come.h"
#include "sim/search/refine_blocking.h"
#include "sim/search/search.h"

namespace pipesim {
namespace {

// Refinement runs B and W apart.
const Problem& problem_refined(const Found& found) {
  return found.apart ? *found.apart : found.problem;
}

// True if the bound leaves room below the best, or below the best of those that keep all.
bool may_be_better(Seconds bound, bool keeps_all, const SearchResult& result) {
  return is_shorter(bound, keeps_all && result.kept ? *result.kept : *result.best);
}

}  // namespace

// Empty where the schedule copies by itself. The order of a program that offloads is refined as if
// it kept all, within what that takes, and offloaded again.
std::optional<Found> Search::refined(const Found& start, Bytes limit, Seconds bound) const {
  const Problem& problem = problem_refined(start);
  RefineOptions options = options_.refinement;
  options.bound = bound;
  if (stays(start)) {
    if (blocking_) return refined_blocking(start, limit, options);
    return refined_as(start, problem, refine(*start.program, problem, limit, options));
  }
  if (blocking_ || offload_chunks_of(start.choice) == 0) return std::nullopt;
  options.bound.reset();
  const Program whole = with_backwards_apart(*program_on_device(start.choice, start.problem));
  const Bytes held = evaluate(whole, problem).peak_activation();
  return refined_as(start, problem,
                    *offloaded(start.choice, refine(whole, problem, held, options), problem));
}

// Nothing where transfers hold its devices for good.
std::optional<Found> Search::refined_as(const Found& start, const Problem& problem,
                                        Program program) const {
  Found found = measure(start, problem, std::make_shared<const Program>(std::move(program)));
  found.apart = nullptr;
  found.refined = true;
  try {
    simulate_blocking(found);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
  return found;
}

std::optional<Found> Search::refined_blocking(const Found& start, Bytes limit,
                                              RefineOptions options) const {
  const Problem& problem = problem_refined(start);
  Found order = start;
  order.program = std::make_shared<const Program>(with_backwards_apart(*start.program));
  order.refined = true;
  options.effort /= 2;
  const std::vector<Program> starts{*order.program,
                                    refine(*order.program, problem, limit, options)};
  const SimulatedOrder shortest = refine_blocking(case_of(order), starts, problem, limit, options);
  return refined_as(start, problem, *shortest.program);
}

// No program with the passes of this one takes less.
Seconds Search::bound_of(const Found& found, BoundsWithin& bounds,
                         const SearchResult& result) const {
  if (keeps_all(found)) return bounds.of(found.layout, problem_refined(found));
  if (!stays(found)) return result.bound;
  return bound_like(*found.program, problem_refined(found), result.limit, false);
}

// Refines the best of every family that may still be better, so that what is found among some
// families is found among all of them.
void Search::add_refined(const std::vector<Found>& all, BoundsWithin& bounds,
                         SearchResult& result) const {
  for (const Found& start : all) {
    const auto is_same = [&start](const Found& other) {
      return stays(start) && stays(other) && same_order(other, start) &&
             other.problem.kind_of_unit == start.problem.kind_of_unit;
    };
    if (std::any_of(&all.front(), &start, is_same)) continue;
    const Seconds bound = bound_of(start, bounds, result);
    if (!may_be_better(bound, keeps_all(start), result)) continue;
    auto found = refined(start, result.limit, bound);
    if (found && fits(*found, result.limit) && has_room(*found)) {
      result.take_if_better(*std::move(found));
    }
  }
}

// Placements that no schedule has an order for.
void Search::refine_bare(const std::vector<Found>& all, BoundsWithin& bounds,
                         SearchResult& result) const {
  for (const Family& family : bare_) {
    const bool has_order = std::ranges::any_of(all, [&family](const Found& found) {
      return keeps_all(found) && found.problem.placement == family.problem.placement;
    });
    const Problem planning = for_planning(family.problem);
    if (has_order || result.limit < planning.device_activation()) continue;
    Found start = measure(family, family.problem,
                          std::make_shared<const Program>(first_come(planning, result.limit)));
    start.choice.name = fmt::format("order on the placement of {}", family.choice.name);
    start.choice.program = start.program;
    const Seconds bound = bounds.of(start.layout, problem_refined(start));
    if (!may_be_better(bound, true, result)) continue;
    auto found = refined(start, result.limit, bound);
    if (found && fits(*found, result.limit)) result.take_if_better(*std::move(found));
  }
}

}  // namespace pipesim
