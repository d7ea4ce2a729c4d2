// The schedule with the least iteration time under a limit on activation memory. The time is the
// longest span of a device where iterations overlap (optimizer.sync: post_validation), else the
// makespan. Candidates are every registered family, the scenario's described schedules with every
// choice of their free parameters, its orders, and refinements of the best. The result has a lower
// bound and the gap.
//
// Families run with the recomputation, offload and transfers that the scenario fixes, and their
// times are those of a run. Families with v chunks per device share a device's costs evenly. Where
// costs are given per stage, those with as many stages as the scenario's first schedule are
// considered. A family is left out, with the reason, if it refuses the shape or the limit. So is
// one that lacks a cost or holds two copies of the model. The options must allow those that copy to
// the host, recompute or split microbatches; a split's part costs more than an even share. Programs
// beyond a node's host memory do not count.
//
// The best program of every placement is refined, where some schedule fits. Where no schedule of a
// placement has an order, a first-come order (first_come.h) is refined, unless only some families
// are asked for. The bound is the least over the placements considered. Results depend on the
// scenario, the options and the seed, not on the number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/case/case.h"
#include "sim/case/node_memory.h"
#include "sim/core/error.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/scenario.h"
#include "sim/search/bound.h"
#include "sim/search/found.h"
#include "sim/search/grounds.h"
#include "sim/search/search_options.h"

namespace pipesim {

struct SearchResult {
  Bytes limit;
  // The best of the families as they are; of a frontier, nothing where no more memory helps.
  std::optional<Found> registered;
  std::optional<Found> best;  // the same, or what refinement found
  // Where families may offload or recompute: the best of those that do neither.
  std::optional<Found> kept;
  // The fastest program, if faster than `best`, that exceeds the host's memory.
  std::optional<Found> without_room;
  Seconds bound;
  // The cause of the bound on the placement that has it; nothing where relief by offload or
  // recomputation lowered it.
  std::optional<BoundReason> reason;
  // Takes it as `best`, or as `kept`, where it is shorter by more than rounding.
  void take_if_better(Found found);
  [[nodiscard]] double gap() const { return best ? std::max(0.0, best->time / bound - 1) : 0; }
};

class Search {
 public:
  // Where no bytes are given every microbatch counts 1 per device. InfeasibleError for a sharded
  // vocabulary, when no family is left and, before any is planned, for more than `max_passes`.
  // InputError, at `cost`, for copies whose seconds it does not know.
  Search(Scenario scenario, SearchOptions options);

  // Nothing is found (`best` is empty) when no family fits. The best of the families as they are is
  // no worse than at any rung below the limit (sim/planning/memory_ladder.h).
  [[nodiscard]] SearchResult at(Bytes limit) const;
  // `points` limits from one microbatch to where more memory stops to help; each result is at least
  // as good as those of smaller limits.
  [[nodiscard]] std::vector<SearchResult> frontier(int points) const;

  // p x the activation of one microbatch on a device: the unit of relative limits.
  [[nodiscard]] Bytes unit() const { return unit_; }
  // The time of what was found where its order is read from a CSV, without a schedule's own calls.
  // With transfers that hold devices it may be longer, or infinite.
  [[nodiscard]] Seconds time_as_csv(const Found& found) const;
  // "name: reason" of families that no limit would bring in.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct SharedPlanners;
  struct Rungs;  // the ladder's limits (sim/planning/memory_ladder.h), planned when first asked for
  struct Family : Contender {           // its problem has no limit
    std::optional<Found> fixed = {};    // of a schedule that takes no limit
    std::shared_ptr<Rungs> rungs = {};  // of one that takes a limit
    // Likewise, where it keeps every activation; shared by all with one problem.
    std::shared_ptr<SharedPlanners> planners = {};
  };

  [[nodiscard]] Case in_order(Case given) const;
  void add_families();
  // Errors of descriptions, each in its own file.
  using Faults = std::vector<std::pair<std::shared_ptr<const DescribedSchedule>, InputError>>;
  [[nodiscard]] bool add(const ScheduleChoice& choice, Faults& faults);
  [[nodiscard]] bool add_family(const Case& prepared);
  void add_bare_placements();
  [[nodiscard]] std::shared_ptr<SharedPlanners> planners_of(const Family& family) const;
  [[nodiscard]] std::shared_ptr<const Program> program_within(const Family& family,
                                                              const Problem& problem) const;
  void leave_out(std::string reason);
  void leave_out(const ScheduleChoice& choice, const std::string& reason);
  [[nodiscard]] Case case_of(const Found& found) const;
  void simulate_blocking(Found& found) const;
  [[nodiscard]] Found planned(const Family& family, const Problem& problem,
                              std::shared_ptr<const Program> program) const;
  [[nodiscard]] std::optional<Found> plan_of(const Family& family, Bytes planning,
                                             Bytes limit) const;
  void plan_rungs(const Family& family, Bytes limit, std::optional<Found>& best) const;
  // Sets `host` by a simulation, since evaluation knows devices only.
  [[nodiscard]] bool has_room(Found& found) const;
  [[nodiscard]] double most_planned(const Family& family) const;
  [[nodiscard]] std::vector<const Found*> relieved_rungs(const Family& family,
                                                         const std::optional<Found>& best) const;
  [[nodiscard]] std::optional<Found> best_of(const Family& family, Bytes limit,
                                             std::optional<Found>& without_room) const;
  void refine_bare(const std::vector<Found>& all, BoundsWithin& bounds, SearchResult& result) const;
  void add_refined(const std::vector<Found>& all, BoundsWithin& bounds, SearchResult& result) const;
  [[nodiscard]] Bytes top_of_frontier(Bytes least) const;
  [[nodiscard]] std::optional<Found> refined(const Found& start, Bytes limit, Seconds bound) const;
  [[nodiscard]] std::optional<Found> refined_as(const Found& start, const Problem& problem,
                                                Program program) const;
  [[nodiscard]] std::optional<Found> refined_blocking(const Found& start, Bytes limit,
                                                      RefineOptions options) const;
  [[nodiscard]] Seconds bound_of(const Found& found, BoundsWithin& bounds,
                                 const SearchResult& result) const;
  // The plans made at a limit: none, where only its bound is asked for; the families'; or also
  // those at the rungs below. Limits of a frontier skip the rungs, since programs of a smaller
  // limit count.
  enum class Plans : std::uint8_t { kNone, kAtLimit, kBelowToo };
  [[nodiscard]] SearchResult at(Bytes limit, Plans plans) const;
  [[nodiscard]] std::vector<Found> candidates(Bytes limit, Plans plans,
                                              std::optional<Found>& without_room) const;
  void add_grounds();
  [[nodiscard]] std::optional<Relief> relief_of(const Family& family) const;
  [[nodiscard]] bool overlaps(const Family& family) const;
  [[nodiscard]] std::vector<Found> starts_of_pairs(const std::vector<Found>& all, Bytes limit,
                                                   const SearchResult& result) const;
  void add_paired(const std::vector<Found>& all, Bytes limit, SearchResult& result) const;

  std::shared_ptr<const Scenario>
      scenario_;  // undisturbed, without contention and in the order of microbatches as given
  MicrobatchOrder order_ = MicrobatchOrder::kGiven;  // the one that families are to have
  bool host_limited_ = false;
  bool blocking_ = false;  // transfers hold devices: times are simulated
  SearchOptions options_;
  Bytes unit_;
  std::vector<Family> families_;
  std::vector<Family> bare_;  // a placement each: refined where no schedule has an order for it
  Grounds grounds_;
  std::vector<std::string> left_out_;
};

}  // namespace pipesim
