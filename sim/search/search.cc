#include "sim/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>
#include <variant>

#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/case/stage_costs.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/pairs.h"
#include "sim/planning/planners.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/prepare/prepare.h"
#include "sim/search/considered.h"
#include "sim/search/grounds.h"
#include "sim/search/refine_blocking.h"

namespace pipesim {
namespace {

// Limits to plan for, of the one to keep, where offload or recomputation lower what is planned, or
// planning counts more than is held.
constexpr std::array kPlanningLimits{1.0, 1.25, 1.5, 2.0, 3.0, 4.0};

// The costs of passes with B and W apart; nothing where those are the given costs.
std::shared_ptr<const Problem> apart(const Case& fused) {
  if (!fused.setting || !fused.setting->fused_backward) return nullptr;
  Outline outline = fused;
  outline.setting->fused_backward = false;
  find_layer_costs(outline);
  const Layout* layout = fused.layout ? &*fused.layout : nullptr;
  Problem problem = with_bytes(make_case(std::move(outline), layout).problem);
  problem.kind_of_unit = fused.problem.kind_of_unit;
  return std::make_shared<const Problem>(std::move(problem));
}

// How much more planning counts than devices hold, at most: all that W needs from F on.
double counted_above(const Problem& problem) {
  double most = 1;
  for (const StageCost& stage : problem.stages) {
    if (stage.activation > Bytes(0)) most = std::max(most, stage.weight_stash / stage.activation);
  }
  return most;
}

bool is_plain(const ScheduleChoice& choice) {
  return offload_chunks_of(choice) + recompute_chunks_of(choice) == 0;
}

bool is_beyond_bounds(const Program& program, const Problem& problem) {
  return problem.shape.splits == 1 && overtakes_unequally(program, problem);
}

// A program found within less memory also keeps the larger limit.
void keep_better(const std::optional<Found>& before, std::optional<Found>& now) {
  if (before && (!now || before->time <= now->time)) now = before;
}

}  // namespace

// Planners with a limit, shared by threads.
struct Search::SharedPlanners {
  explicit SharedPlanners(Problem problem) : planners(std::move(problem)) {}

  std::mutex busy;
  Planners planners;
};

struct Search::Rungs {
  struct Rung {
    Bytes limit;
    std::once_flag planned;
    std::optional<Found> found;
  };

  explicit Rungs(const std::vector<Bytes>& limits) : all(limits.size()) {
    for (size_t i = 0; i < limits.size(); ++i) all[i].limit = limits[i];
  }

  std::vector<Rung> all;  // the highest first
};

Search::Search(Scenario scenario, SearchOptions options) : options_(std::move(options)) {
  refuse_what_no_search_plans(scenario, options_);
  blocking_ = scenario.transfers == Transfers::kBlocking;
  scenario.engine = EngineKind::kReplay;
  scenario.perturb = {};
  if (scenario.batch.unequal) {
    scenario.batch.unequal->draw.runs = 1;
    order_ = std::exchange(scenario.batch.unequal->order, MicrobatchOrder::kGiven);
  }
  const auto nothing = [](Bytes bytes) { return bytes <= Bytes(0); };
  if (!knows_memory(scenario) ||
      (scenario.memory && std::ranges::all_of(scenario.memory->activation, nothing))) {
    scenario.memory.emplace();
    scenario.memory->activation = scenario.memory->weight_stash = {Bytes(1)};
  } else {
    host_limited_ = scenario.cluster && scenario.cluster->host_memory;
  }
  scenario_ = std::make_shared<const Scenario>(std::move(scenario));
  add_families();
  if (options_.refine && options_.schedules.empty()) add_bare_placements();
  if (families_.empty()) {
    throw InfeasibleError(
        fmt::format("no schedule can be considered\n  {}", fmt::join(left_out_, "\n  ")));
  }
  for (const Family& family : families_) {
    unit_ = std::max(unit_, memory_of_1f1b(for_planning(family.problem)));
  }
  add_grounds();
}

// With its microbatches in the order that the scenario asks for; as given where that has to be
// sought among programs and the schedule has none.
Case Search::in_order(Case given) const {
  const auto own = given.problem.activation_limit;
  auto within = own;
  if (const auto* bytes = std::get_if<Bytes>(&options_.order_within)) {
    within = *bytes;
  } else if (const auto* factor = std::get_if<double>(&options_.order_within)) {
    within = *factor * given.placement.devices() * for_planning(given.problem).device_activation();
  }
  const auto order = [&](const std::optional<Bytes>& limit) {
    given.problem.activation_limit = limit;
    try {
      order_microbatches(given, order_);
      return true;
    } catch (const InputError&) {
      return false;
    } catch (const InfeasibleError&) {
      return false;
    }
  };
  // No program within the limit: perhaps one above it, of which something leaves.
  if (!order(within) && within != own) (void)order(own);
  given.problem.activation_limit = own;
  return given;
}

void Search::add_families() {
  const Considered considered = families_considered(*scenario_, options_);
  for (const std::string& reason : considered.left_out) leave_out(reason);
  const int all = static_cast<int>(considered.families.size());
  Faults faults;
  for (int done = 0; done < all; ++done) {
    options_.progress({SearchProgress::Step::kFamilies, done, all});
    (void)std::ranges::all_of(considered.families[done],
                              [&](const ScheduleChoice& choice) { return add(choice, faults); });
  }
  // A description is at fault itself where none of its choices can be made.
  for (const auto& [described, fault] : faults) {
    const bool any = std::ranges::any_of(families_, [&described = described](const Family& family) {
      return family.choice.described == described;
    });
    if (!any) throw InputError(fault);
  }
}

// Also of schedules that refuse the shape. Their orders keep every activation.
void Search::add_bare_placements() {
  const std::vector<FixedRelief> reliefs = fixed_reliefs(*scenario_, options_);
  const auto fixed = std::ranges::find_if(reliefs, &FixedRelief::keeps_all);
  if (fixed == reliefs.end()) return;
  const std::optional<int> stages = stages_of_costs(*scenario_);
  const auto is_there = [this](const Placement& place) {
    return std::ranges::any_of(
        bare_, [&place](const Family& family) { return family.problem.placement == place; });
  };
  const int devices = scenario_->parallel.pipeline;
  for (const Schedule* schedule : schedules()) {
    const int most = std::min(schedule->max_chunks, options_.max_chunks);
    for (int chunks = schedule->min_chunks; chunks <= most; ++chunks) {
      const Placement place = schedule->place(devices, chunks);
      if (place.directions() > 1 || schedule->default_splits > 1 || schedule->offloads() ||
          is_there(place) || (stages && *stages != place.model_stages())) {
        continue;
      }
      ScheduleChoice choice;
      choice.name = schedule->name;
      choice.options = options_of(*schedule);
      choice.chunks = chunks;
      choice.recompute = fixed->recompute;
      try {
        const Case bare = in_order(prepare(scenario_, choice));
        bare_.push_back({{choice, bare.layout, bare.microbatch_order, with_bytes(bare.problem)}});
      } catch (const std::runtime_error&) {
        continue;  // its layers cannot be divided so: said of the schedule already
      }
    }
  }
}

void Search::leave_out(std::string reason) {
  if (std::ranges::find(left_out_, reason) == left_out_.end()) {
    left_out_.push_back(std::move(reason));
  }
}

// True if the choice became a family.
bool Search::add(const ScheduleChoice& choice, Faults& faults) {
  const bool splits = choice.program ? splits_of(choice) > options_.max_splits
                                     : schedule_of(choice).default_splits > options_.max_splits;
  if (splits) {
    leave_out(choice.name + ": splits microbatches along the sequence");
    return false;
  }
  const bool copies =
      choice.program ? choice.program->copies() != nullptr : schedule_of(choice).copies();
  if (copies && !options_.offload && !choice.offload) {
    leave_out(choice.name + ": copies activations to the host");
    return false;
  }
  try {
    const Case given = prepare(scenario_, choice);
    const Case ordered = in_order(given);
    if (!add_family(ordered)) return false;
    // An order is sought for one limit, and without what leaves: elsewhere it may be worse.
    const bool sought = order_ == MicrobatchOrder::kSearch || order_ == MicrobatchOrder::kDynaPipe;
    const bool exact = !takes_limit(choice) && is_plain(given.choice);
    if (sought && !exact && ordered.problem.kind_of_unit != given.problem.kind_of_unit) {
      (void)add_family(given);
    }
    return true;
  } catch (const InputError& error) {
    const bool of_file = choice.described && error.where().file != choice.where.file;
    if (of_file) faults.emplace_back(choice.described, error);
    leave_out(choice, error.message());
  } catch (const InfeasibleError& error) {
    leave_out(choice, error.what());
  }
  return false;
}

void Search::leave_out(const ScheduleChoice& choice, const std::string& reason) {
  const bool prefixed = reason.starts_with(choice.name + ": ");
  const bool several =
      !choice.program && std::min(schedule_of(choice).max_chunks, options_.max_chunks) >
                             schedule_of(choice).min_chunks;
  leave_out(fmt::format("{}{}: {}", choice.name,
                        several ? fmt::format(" with {} chunks", *choice.chunks) : "",
                        prefixed ? reason.substr(reason.find(": ") + 2) : reason));
}

bool Search::add_family(const Case& prepared) {
  const ScheduleChoice& choice = prepared.choice;
  Family family{{choice, prepared.layout, prepared.microbatch_order, with_bytes(prepared.problem)}};
  if (family.problem.placement.directions() > 1) {
    leave_out(fmt::format("{}: holds {} copies of the model", choice.name,
                          family.problem.placement.directions()));
    return false;
  }
  family.apart = apart(prepared);
  if (!takes_limit(choice)) {
    family.fixed = planned(family, family.problem, make_program(choice, family.problem));
    if (is_beyond_bounds(*family.fixed->program, family.problem)) {
      leave_out(choice.name + ": its microbatches, which cost unequally, overtake each other");
      return false;
    }
    (void)has_room(*family.fixed);
  }
  if (takes_limit(choice)) {
    const Problem planning = for_planning(family.problem);
    const Bytes all = planning.shape.microbatches * planning.device_activation();
    family.rungs = std::make_shared<Rungs>(rungs_below(planning, all));
    if (is_plain(choice)) family.planners = planners_of(family);
  }
  families_.push_back(std::move(family));
  return true;
}

// Returns the planners of an earlier family with the same problem, or new ones.
std::shared_ptr<Search::SharedPlanners> Search::planners_of(const Family& family) const {
  const auto same = std::ranges::find_if(families_, [&family](const Family& other) {
    return other.planners != nullptr && other.layout == family.layout &&
           same_costs(other.problem, family.problem) &&
           other.problem.options == family.problem.options &&
           schedule_of(other.choice).each_unit == schedule_of(family.choice).each_unit &&
           (!schedule_of(family.choice).each_unit ||
            other.problem.kind_of_unit == family.problem.kind_of_unit);
  });
  return same != families_.end() ? same->planners
                                 : std::make_shared<SharedPlanners>(
                                       for_planning(family.problem, schedule_of(family.choice)));
}

// Within the problem's limit.
std::shared_ptr<const Program> Search::program_within(const Family& family,
                                                      const Problem& problem) const {
  const Schedule& schedule = schedule_of(family.choice);
  if (family.planners == nullptr || schedule.planner == nullptr) {
    return make_program(family.choice, problem);
  }
  if (const auto refusal = schedule.refusal(problem)) throw InfeasibleError(refusal->reason);
  const std::scoped_lock lock(family.planners->busy);
  return family.planners->planners.plan(schedule, *problem.activation_limit);
}

// The case of what was found. A plan has the calls of its schedule's framework; a refined order
// runs as from a CSV.
Case Search::case_of(const Found& found) const {
  ScheduleChoice choice = found.choice;
  if (found.refined) {
    choice.program = found.program;
    choice.described = nullptr;
  }
  Case result = make_case(outline_of(scenario_, choice), found.layout ? &*found.layout : nullptr);
  result.problem.kind_of_unit = found.problem.kind_of_unit;
  result.choice.program = found.program;
  return result;
}

// Evaluation knows no transfers that hold devices.
void Search::simulate_blocking(Found& found) const {
  if (!blocking_) return;
  const Case its_case = case_of(found);
  const Report report = simulate(its_case, nullptr, nullptr, Detail::kNumbers).report;
  found.cost = report.cost;
  found.makespan = report.makespan_from_rest;
  found.time = time_of(report, its_case.problem.objective);
  found.bubble_rate = report.bubble_rate;
  found.bubble_rate_busiest = report.bubble_rate_busiest;
  found.peak = report.peak_activation;
}

Found Search::planned(const Family& family, const Problem& problem,
                      std::shared_ptr<const Program> program) const {
  Found found = measure(family, problem, std::move(program));
  simulate_blocking(found);
  return found;
}

Seconds Search::time_as_csv(const Found& found) const {
  if (!blocking_) return found.time;
  Found order = found;
  order.refined = true;
  try {
    simulate_blocking(order);
    return order.time;
  } catch (const InfeasibleError&) {
    return Seconds(std::numeric_limits<double>::infinity());
  }
}

// The family's program planned for the limit `planning`; nothing where it exceeds `limit`.
std::optional<Found> Search::plan_of(const Family& family, Bytes planning, Bytes limit) const {
  Problem problem = family.problem;
  problem.activation_limit = planning;
  try {
    Found found = planned(family, problem, program_within(family, problem));
    const bool counts = fits(found, limit) && !is_beyond_bounds(*found.program, problem);
    return counts ? std::optional(std::move(found)) : std::nullopt;
  } catch (const InfeasibleError&) {
    return std::nullopt;  // not under this limit
  }
}

// More memory does not always give a better program, so programs within less memory count too.
void Search::plan_rungs(const Family& family, Bytes limit, std::optional<Found>& best) const {
  for (Rungs::Rung& rung : family.rungs->all) {
    if (kRounding * rung.limit >= limit) continue;
    if (best && best->time <= bound_of_devices(family.problem, rung.limit)) return;
    std::call_once(rung.planned, [&] {
      std::optional<Found> none;  // nothing leaves for the host
      rung.found = best_of(family, rung.limit, none);
    });
    if (rung.found && (!best || better(*rung.found, *best))) best = rung.found;
  }
}

bool Search::has_room(Found& found) const {
  if (!host_limited_ || found.program->copies() == nullptr) return true;
  if (!found.host) found.host = simulate(case_of(found)).host;
  return found.host->fits();
}

std::vector<Found> Search::candidates(Bytes limit, Plans plans,
                                      std::optional<Found>& without_room) const {
  std::vector<Found> all;
  int done = 0;
  for (const Family& family : families_) {
    if (plans == Plans::kBelowToo) {
      options_.progress(
          {SearchProgress::Step::kFamiliesAtLimit, done++, static_cast<int>(families_.size())});
    }
    std::optional<Found> best = best_of(family, limit, without_room);
    if (family.planners != nullptr && plans == Plans::kBelowToo) plan_rungs(family, limit, best);
    if (best) all.push_back(std::move(*best));
  }
  std::ranges::stable_sort(all, better);
  return all;
}

// The best of what the family makes of the limit, and what is better still but has no room on the
// host.
std::optional<Found> Search::best_of(const Family& family, Bytes limit,
                                     std::optional<Found>& without_room) const {
  std::optional<Found> best;
  const auto count = [&](Found found) {
    if (best && !better(found, *best)) return;
    if (has_room(found)) {
      best = std::move(found);
    } else if (!without_room || better(found, *without_room)) {
      without_room = std::move(found);
    }
  };
  if (family.fixed) {
    if (fits(*family.fixed, limit)) count(*family.fixed);
    return best;
  }
  const double most = most_planned(family);
  for (const double more : kPlanningLimits) {
    if (more > 1 && more > most) break;
    if (auto found = plan_of(family, more * limit, limit)) count(std::move(*found));
  }
  for (const Found* found : relieved_rungs(family, best)) {
    if (fits(*found, limit)) count(*found);
  }
  return best;
}

// How many times the limit is planned for.
double Search::most_planned(const Family& family) const {
  return is_plain(family.choice) ? counted_above(family.problem) : kPlanningLimits.back();
}

// The plans for every rung, where something leaves and the best may be better.
std::vector<const Found*> Search::relieved_rungs(const Family& family,
                                                 const std::optional<Found>& best) const {
  const Seconds least = bound_of_devices(family.problem, no_limit(family.problem));
  if (is_plain(family.choice) || (best && best->time <= least)) return {};
  std::vector<const Found*> plans;
  for (Rungs::Rung& rung : family.rungs->all) {
    std::call_once(rung.planned,
                   [&] { rung.found = plan_of(family, rung.limit, no_limit(family.problem)); });
    if (rung.found) plans.push_back(&*rung.found);
  }
  return plans;
}

// True where its programs may have overlapped blocks: its own, or those that refinement joins.
bool Search::overlaps(const Family& family) const {
  const bool has = family.fixed && !family.fixed->program->pairs().empty();
  return has || (options_.refine && gains_by_pairs(family.problem));
}

// How the family's programs stay within a limit; nothing where a given order recomputes stages of
// its own.
std::optional<Relief> Search::relief_of(const Family& family) const {
  const Program* order = family.fixed ? family.fixed->program.get() : nullptr;
  const bool copies = order != nullptr ? order->copies() != nullptr
                                       : offload_chunks_of(family.choice) > 0 ||
                                             schedule_of(family.choice).copies();
  const Relief relief{family.problem.recompute_chunks, copies};
  const Placement& place = family.problem.placement;
  for (int vs = 0; order != nullptr && vs < place.virtual_stages(); ++vs) {
    if (order->recomputes(vs) != (place.chunk(vs) < relief.recompute_chunks)) return std::nullopt;
  }
  return relief;
}

void Search::add_grounds() {
  for (const auto* families : {&families_, &bare_}) {
    for (const Family& family : *families) {
      const auto relief = relief_of(family);
      grounds_.add(family.layout, family.problem, overlaps(family), relief);
      if (family.apart) grounds_.add(family.layout, *family.apart, overlaps(family), relief);
    }
  }
}

void SearchResult::take_if_better(Found found) {
  if (kept && keeps_all(found) && is_shorter(found.time, *kept)) kept = found;
  if (is_shorter(found.time, *best)) best = std::move(found);
}

SearchResult Search::at(Bytes limit) const { return at(limit, Plans::kBelowToo); }

SearchResult Search::at(Bytes limit, Plans plans) const {
  SearchResult result;
  result.limit = limit;
  BoundsWithin bounds(grounds_, limit);
  const LeastBound least = bounds.least();
  result.bound = least.seconds;
  result.reason = least.reason;
  if (plans == Plans::kNone) return result;
  const std::vector<Found> all = candidates(limit, plans, result.without_room);
  if (all.empty()) return result;
  result.registered = result.best = all.front();
  if (options_.offload || options_.recompute) {
    const auto kept = std::ranges::find_if(all, keeps_all);
    if (kept != all.end()) result.kept = *kept;
  }
  if (options_.refine) {
    add_refined(all, bounds, result);
    refine_bare(all, bounds, result);
    add_paired(all, limit, result);
  }
  if (const LeastBound closer = bounds.least(result.best->time); closer.seconds > result.bound) {
    result.bound = closer.seconds;
    result.reason = closer.reason;
  }
  if (result.without_room && !(result.without_room->time < result.best->time)) {
    result.without_room = std::nullopt;
  }
  if (result.best->time * (1 + 1e-9) < result.bound) {
    throw LogicError(result.best->choice.name + " takes less than the lower bound");
  }
  return result;
}

std::vector<SearchResult> Search::frontier(int points) const {
  const Bytes least = unit_ / families_.front().problem.shape.devices;
  const Bytes top = top_of_frontier(least);
  // No limit up to `top` lets anything be shorter: who reaches it need not be sought again.
  BoundsWithin bounds(grounds_, top);
  const Seconds least_time = kRounding * bounds.least().seconds;
  const auto is_solved = [least_time](const SearchResult& result) {
    return result.best && result.best->time <= least_time;
  };
  std::vector<SearchResult> results(points);
  std::atomic<int> solved = points, sought = 0;
  ThreadTeam().run(results.size(), [&](size_t index) {
    const int i = static_cast<int>(index);
    const double part = points == 1 ? 1.0 : static_cast<double>(i) / (points - 1);
    results[i] = at(least + part * (top - least), i < solved ? Plans::kAtLimit : Plans::kNone);
    options_.progress({SearchProgress::Step::kLimits, ++sought, points});
    if (!is_solved(results[i])) return;
    for (int now = solved; i < now && !solved.compare_exchange_weak(now, i);) continue;
  });
  // Behind the first that no memory would make shorter nothing counts: how much of it was sought
  // depends on the threads.
  const auto done = std::ranges::find_if(results, is_solved);
  for (auto i = results.begin(); i != results.end(); ++i) {
    if (i > done) i->best = i->registered = std::nullopt;
    if (i == results.begin()) continue;
    keep_better(std::prev(i)->best, i->best);
    if (i <= done) keep_better(std::prev(i)->registered, i->registered);
  }
  return results;
}

// Where no schedule waits for memory any more.
Bytes Search::top_of_frontier(Bytes least) const {
  const Shape& shape = families_.front().problem.shape;
  // With three times p microbatches in flight none does.
  const Bytes top = std::min<double>(shape.microbatches, 3.0 * shape.devices) * least;
  std::optional<Found> without_room;
  const auto all = candidates(top, Plans::kAtLimit, without_room);
  return all.empty() ? top : std::min(top, all.front().peak);
}

}  // namespace pipesim
