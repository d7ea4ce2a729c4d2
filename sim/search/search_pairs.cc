// Overlapped blocks in a search: the part of Search that joins neighbours.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/planning/pairs.h"
#include "sim/search/bound_like.h"
#include "sim/search/planned_within.h"
#include "sim/search/search.h"

namespace pipesim {
namespace {

// Orders of a placement whose blocks are refined. Refining four instead of one took off another
// 0.6% in the mean of 14 random problems.
constexpr int kRefined = 4;

// The best orders with blocks of every placement, from the best on.
std::vector<const Found*> worth_refining(const std::vector<Found>& paired) {
  std::vector<const Found*> chosen;
  for (const Found& found : paired) {
    if (found.program->pairs().empty() || !stays(found)) continue;
    const auto is_beside = [&found](const Found* other) {
      return other->layout == found.layout && other->problem.placement == found.problem.placement;
    };
    const auto is_same = [&found](const Found* other) { return same_order(*other, found); };
    if (std::ranges::count_if(chosen, is_beside) == kRefined) continue;
    if (std::ranges::none_of(chosen, is_same)) chosen.push_back(&found);
  }
  return chosen;
}

}  // namespace

// Orders whose neighbours are worth joining: the best of every family, what refinement found, and
// what every schedule of a placement plans. Plans are for the limit and for one activation less,
// since a block holds its F and its backward at once.
std::vector<Found> Search::starts_of_pairs(const std::vector<Found>& all, Bytes limit,
                                           const SearchResult& result) const {
  std::vector<Found> starts = all;
  if (result.best->refined) starts.push_back(*result.best);
  for (const Family& family : bare_) {
    Bytes one;
    for (const StageCost& stage : family.problem.stages) one = std::max(one, stage.activation);
    for (const Bytes within : {limit, limit - one}) {
      for (Program& order : planned_within(family.problem, within, Included::kAll)) {
        starts.push_back(
            measure(family, family.problem, std::make_shared<const Program>(std::move(order))));
      }
    }
  }
  std::vector<Found> distinct;
  for (Found& start : starts) {
    const auto is_same = [&start](const Found& other) { return same_order(other, start); };
    if (!gains_by_pairs(start.problem) || std::ranges::any_of(distinct, is_same)) continue;
    distinct.push_back(std::move(start));
  }
  return distinct;
}

// Joins neighbours into overlapped blocks, where blocks take less than their passes, and refines
// the best of these.
void Search::add_paired(const std::vector<Found>& all, Bytes limit, SearchResult& result) const {
  const bool gains = std::ranges::any_of(
      families_, [](const Family& family) { return gains_by_pairs(family.problem); });
  if (!gains || !is_shorter(result.bound, *result.best)) return;
  std::vector<Found> paired;
  for (const Found& start : starts_of_pairs(all, limit, result)) {
    if (options_.refinement.stop()) break;
    auto found =
        refined_as(start, start.problem,
                   with_pairs(*start.program, start.problem, limit, options_.refinement.effort));
    if (!found || !fits(*found, limit) || !has_room(*found)) continue;
    result.take_if_better(*found);
    paired.push_back(*std::move(found));
  }
  std::ranges::stable_sort(paired, better);
  for (const Found* start : worth_refining(paired)) {
    if (options_.refinement.stop()) break;
    const Problem& problem = start->apart ? *start->apart : start->problem;
    const Seconds bound = bound_like(*start->program, problem, limit, true);
    if (!is_shorter(bound, *result.best)) continue;
    auto found = refined(*start, limit, bound);
    if (found && fits(*found, limit)) result.take_if_better(*std::move(found));
  }
}

}  // namespace pipesim
