#include "sim/layouts/plan.h"

#include <algorithm>
#include <atomic>
#include <boost/iterator/counting_iterator.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/case/make_case.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/layouts/bound.h"
#include "sim/layouts/candidate.h"
#include "sim/layouts/first_bounds.h"
#include "sim/layouts/layer_splits.h"
#include "sim/layouts/near_miss.h"
#include "sim/layouts/ranking.h"
#include "sim/layouts/runs_on.h"
#include "sim/layouts/shortlist.h"
#include "sim/layouts/simplest.h"
#include "sim/prepare/balance.h"
#include "sim/prepare/microbatch_order.h"

namespace pipesim {
namespace {

constexpr size_t kAtOnce = 512;    // points of a round,
constexpr size_t kRunAtOnce = 32;  // of which so many are run; the others are only bounded
// So many times as long as others a run of a schedule that follows a limit is taken to be: only the
// order of work within a round follows from it.
constexpr double kPlannedWithin = 16;
constexpr double kNever = std::numeric_limits<double>::infinity();

using Layers = boost::counting_iterator<int>;

class Planner {
 public:
  Planner(const PlanQuestion& question, const PlanOptions& options)
      : question_(question),
        options_(options),
        layouts_(question.base.modelled->model),
        ranking_(static_cast<size_t>(options.best), options.ideas.has_value()) {
    PlanSpace space = plan_space(question);
    points_ = std::move(space.points);
    divisions_ = space.divisions;
    if (const auto framework = question.axes.runs_on) {
      std::erase_if(points_,
                    [&](const PlanPoint& each) { return !may_run(*framework, question_, each); });
    }

    if (options.ideas) {
      shortlist_.emplace(question.limit());
      none_runs_ = !why_it_runs_none(*options.ideas, question).empty();
    }
    counts_.points = points_.size();
    fits_.resize(points_.size());
    ran_.resize(points_.size());
  }

  PlanResult run() {
    fill_queue();
    std::vector<PlanStep> steps;
    while (take(steps)) {
      find_splits(steps);
      if (stopped_) break;
      const std::vector<size_t> order = longest_first(steps);
      in_parallel(steps.size(), [&](size_t i) { advance(steps[order[i]]); });
      if (stopped_) break;  // what was on its way is not settled
      for (PlanStep& step : steps) settle(std::move(step));
      if (ranking_.rank()) wait_again();
      report_progress();
    }
    counts_.too_slow = too_slow_.size() + (stopped_ ? 0 : queue_.size());
    std::vector<Planned> ideas;
    if (shortlist_) ideas = shortlist_->rows();
    std::vector<Planned> best;
    for (const Planned* row : ranking_.rows()) best.push_back(*row);
    const std::vector<Planned>& first = shortlist_ ? ideas : best;
    if (!first.empty()) count_faster_with_memory(first.front().iteration.value());
    complete(best);
    complete(ideas);
    std::optional<NearMiss> nearest;
    if (first.empty() && !stopped_) nearest = nearest_to_fit();
    if (nearest) add_shares(nearest->planned);
    return {std::move(best), std::move(ideas), counts_, divisions_, std::move(nearest), stopped_};
  }

 private:
  using Queue = std::priority_queue<PlanCandidate, std::vector<PlanCandidate>, PlanBehind>;

  void count_faster_with_memory(double fastest) {
    counts_.faster_with_memory = static_cast<size_t>(std::ranges::count_if(
        excluded_, [&](const PlanCandidate& each) { return each.bound < fastest; }));
  }

  void fill_queue() {
    std::vector<PlanCandidate> all(points_.size());
    costs_.resize(points_.size());
    constexpr size_t kSlice = 512;
    in_parallel((all.size() + kSlice - 1) / kSlice, [&](size_t slice) {
      FirstBounds bounds(question_);
      const size_t end = std::min((slice + 1) * kSlice, all.size());
      for (size_t id = slice * kSlice; id < end; ++id) {
        const FirstBound bound = bounds.of(points_[id]);
        all[id] = {.id = id, .bound = bound.iteration.value(), .memory = bound.memory};
        costs_[id] = bound.costs;
      }
    });
    queue_ = Queue(PlanBehind{}, std::move(all));
  }

  // Adds to named layouts the frameworks that run them and where their time goes.
  void complete(std::vector<Planned>& named) {
    simplify_rows(named);
    team_.run(named.size(), [&](size_t i) {
      named[i].rank_by_replay = i + 1;
      named[i].runs_on = frameworks_of(question_, named[i]);
      add_shares(named[i]);
    });
  }

  // Gives rows their simplest forms, of which two may be one.
  void simplify_rows(std::vector<Planned>& rows) {
    if (!shortlist_ || stopped_) return;
    const auto find_alike = [this](const Planned& row, const std::vector<size_t>& ids) {
      return first_alike(row, ids);
    };
    for (Planned& row : rows) simplify(row, points_, find_alike);
    merge_rows(rows);
  }

  // The first of these points that takes as long as a row, and stands for what it stands for.
  std::optional<Planned> first_alike(const Planned& row, const std::vector<size_t>& ids) {
    for (const size_t id : ids) {
      const auto twin = twin_without_offload(id);
      if (twin && ran_[*twin] == 0) (void)planned_within({*twin}, kNever);
    }
    for (Planned& each : planned_within(ids, kAlike * row.iteration.value())) {
      const bool roomy = std::ranges::count(row.ideas, PlanIdea::kRoomy) == 0 ||
                         each.peak <= kRoomyShare * question_.limit();
      if (each.fits >= row.fits && roomy && runs(each.id) == runs(row.id)) return std::move(each);
    }
    return std::nullopt;
  }

  // The runs of points that fit and take no more than so many seconds, in the order of the points.
  std::vector<Planned> planned_within(const std::vector<size_t>& ids, double seconds) {
    std::vector<PlanStep> steps;
    for (const size_t id : ids) steps.push_back({{.id = id}});
    find_splits(steps);
    in_parallel(steps.size(), [&](size_t i) {
      PlanStep& step = steps[i];
      while (step.fate == PlanFate::kWaits && step.candidate.bound <= seconds) advance(step);
    });
    std::vector<Planned> found;
    for (PlanStep& step : steps) {
      const bool planned = step.fate == PlanFate::kPlanned;
      if (planned || step.fate == PlanFate::kUnfit) {
        ran_[step.candidate.id] = step.planned.iteration.value();
      }
      if (!planned) continue;
      fits_[step.candidate.id] = step.planned.fits == MemoryFit::kYes ? 1 : 0;
      if (step.planned.iteration.value() <= seconds) found.push_back(std::move(step.planned));
    }
    return found;
  }

  // In a search for ideas: its framework runs the point.
  [[nodiscard]] bool runs(size_t id) const {
    return !options_.ideas || (!none_runs_ && may_run(*options_.ideas, question_, points_[id]));
  }

  // True where no point behind this one may enter either.
  [[nodiscard]] bool is_closed(const PlanCandidate& next) const {
    if (options_.exhaustive) return false;
    if (!shortlist_) return !may_rank(next);
    const Planned* row = ranking_.last();
    const double last = options_.best == 0 ? 0 : row == nullptr ? kNever : row->iteration.value();
    return next.bound * kBelow >= std::max(last, shortlist_->closed_from());
  }

  [[nodiscard]] bool may_enter(const PlanCandidate& candidate) const {
    if (options_.exhaustive || !shortlist_) return true;
    const bool run = runs(candidate.id);
    return (run && may_rank(candidate)) ||
           shortlist_->may_enter(points_[candidate.id], run, candidate.bound, candidate.tight,
                                 candidate.memory);
  }

  // True where a point may be better than the last of the layouts that are asked for.
  [[nodiscard]] bool may_rank(const PlanCandidate& candidate) const {
    if (options_.exhaustive) return true;
    if (options_.best == 0) return false;
    const Planned* last = ranking_.last();
    if (last == nullptr) return true;
    const bool tight = last->fits == MemoryFit::kTight;
    if (tight != candidate.tight) return tight;
    return candidate.bound * kBelow < last->iteration.value();
  }

  void wait_again() {
    for (const PlanCandidate& each : too_slow_) queue_.push(each);
    too_slow_.clear();
  }

  bool is_left_out(const PlanCandidate& next) {
    const bool large = !next.sharp && is_too_large(next.memory);
    const bool slow = !large && !may_enter(next);
    if (large) exclude(next, PlanFate::kTooLarge);
    if (slow) too_slow_.push_back(next);
    return large || slow;
  }

  bool take(std::vector<PlanStep>& steps) {
    steps.clear();
    std::vector<PlanCandidate> later;
    size_t run = 0;
    while (steps.size() < kAtOnce && run < kRunAtOnce && !queue_.empty() &&
           !is_closed(queue_.top())) {
      const PlanCandidate next = queue_.top();
      queue_.pop();
      if (is_left_out(next)) continue;
      // A step in this round may already answer for its twin.
      const bool twin_runs = !steps.empty() && steps.back().candidate.id + 1 == next.id &&
                             steps.back().candidate.sharp && next.sharp &&
                             is_worth_running_without(next) && has_twin_without_offload(next.id);
      if (twin_runs) {
        later.push_back(next);
      } else {
        steps.push_back({next});
        run += next.sharp ? 1 : 0;
      }
    }
    for (const PlanCandidate& each : later) queue_.push(each);
    return !steps.empty();
  }

  // So that no thread begins a long run when the others have ended.
  [[nodiscard]] std::vector<size_t> longest_first(const std::vector<PlanStep>& steps) const {
    const auto effort = [&](size_t i) {
      if (!steps[i].candidate.sharp) return 0.0;
      const PlanPoint& point = points_[steps[i].candidate.id];
      const double passes = 1.0 * point.pipeline * point.chunks / (point.data * point.micro_batch);
      return point.schedule->memory_limit ? kPlannedWithin * passes : passes;
    };
    std::vector<size_t> order(steps.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater{}, effort);
    return order;
  }

  // True if the point before is the same without offload of whole chunks.
  [[nodiscard]] bool has_twin_without_offload(size_t id) const {
    if (id == 0 || !points_[id].offload) return false;
    PlanPoint without = points_[id];
    without.offload = false;
    return points_[id - 1] == without;
  }
  // The same point without offload of chunks or modules. Points of one kind of recomputation stand
  // together.
  [[nodiscard]] std::optional<size_t> twin_without_offload(size_t id) const {
    if (has_twin_without_offload(id)) return id - 1;
    if (!points_[id].modules.any()) return std::nullopt;
    PlanPoint without = points_[id];
    without.modules = {};
    for (size_t i = id; i-- > 0 && points_[i].recompute == without.recompute;) {
      if (points_[i] == without) return i;
      if (!same_sizes(points_[i], without)) break;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool fits_without_offload(size_t id) const {
    const auto twin = twin_without_offload(id);
    return twin && fits_[*twin] != 0;
  }

  // Finds the splits that steps need, each once.
  void find_splits(std::vector<PlanStep>& steps) {
    in_parallel(steps.size(), [&](size_t i) { ask_for_split(steps[i]); });
    std::vector<BalancedLayouts::Key> splits;
    for (const PlanStep& step : steps) {
      if (step.split) splits.push_back(*step.split);
    }
    layouts_.find(splits, [&](size_t count, const auto& work) { in_parallel(count, work); });
  }

  void ask_for_split(PlanStep& step) const {
    const PlanPoint& point = points_[step.candidate.id];
    if (step.candidate.sharp || point.split != PlanSplit::kBalanced) return;
    if (fits_without_offload(step.candidate.id)) return;
    attempt(step, [&] {
      const Outline asked = outline(point, nullptr, costs_[step.candidate.id]);
      const int stages = asked.placement.model_stages();
      step.split = BalancedLayouts::key(stages, layer_weights(asked));
      const Transformer& model = asked.scenario->modelled->model;
      const bool may_be_even = std::ranges::count(question_.axes.splits, PlanSplit::kEven) > 0;
      if (may_be_even && model.num_layers % stages == 0) {
        step.even = even_layout(model, asked.placement, {});
      }
    });
  }

  void advance(PlanStep& step) const {
    if (step.fate != PlanFate::kWaits) return;
    if (fits_without_offload(step.candidate.id)) {
      step.fate = PlanFate::kRepeated;
      return;
    }
    attempt(step, [&] {
      if (!step.candidate.sharp) {
        sharpen(step);
      } else if (is_worth_running_without(step.candidate)) {
        run_without_offload(step);
      } else {
        evaluate(step);
      }
    });
  }

  // The fate of a step that is refused.
  template <class Work>
  void attempt(PlanStep& step, Work work) const {
    try {
      work();
    } catch (const InputError&) {
      step.fate = PlanFate::kRefused;
    } catch (const InfeasibleError&) {
      // Schedules with a limit refuse what one microbatch alone exceeds.
      const bool limited = points_[step.candidate.id].schedule->memory_limit;
      step.fate = limited ? PlanFate::kTooLarge : PlanFate::kRefused;
    }
  }

  void sharpen(PlanStep& step) const {
    const PlanPoint& point = points_[step.candidate.id];
    if (step.split) {
      step.candidate.layout = &layouts_.of(*step.split);
      if (step.even == *step.candidate.layout) {
        step.fate = PlanFate::kRepeated;
        return;
      }
    }
    const Case made = case_of(step.candidate);
    const RunBound bound = lighten(run_bound(made), made, step.candidate);
    step.candidate.bound = std::max(step.candidate.bound, bound.iteration.value());
    step.candidate.sharp = true;
    step.memory = step.candidate.memory = bound.memory;
    step.candidate.tight = kBelow * bound.memory > question_.surely_within();
    const bool host_full = kBelow * optimizer_on_node(made) > question_.base.hardware->host.memory;
    if ((host_full && !options_.exhaustive) || is_too_large(bound.memory)) {
      step.fate = PlanFate::kTooLarge;
    } else if (point.schedule->refusal(for_planning(made.problem, *point.schedule))) {
      step.fate = PlanFate::kRefused;
    }
  }

  [[nodiscard]] bool is_too_large(Bytes bound) const {
    return !options_.exhaustive && kBelow * bound > question_.may_be_within();
  }

  [[nodiscard]] Case case_of(const PlanCandidate& candidate) const {
    return batch_case(outline(point_of(candidate), candidate.layout, costs_[candidate.id]));
  }

  // Recomputes as few layers of each stage as surely fit by the bound on memory, and returns their
  // bound. Bisects: of the tries that fit, the last is the lightest.
  RunBound lighten(RunBound bound, const Case& all, PlanCandidate& candidate) const {
    const auto fits = [&](const RunBound& each) {
      return kBelow * each.memory <= question_.surely_within();
    };
    if (!takes_fewest_layers(question_, points_[candidate.id]) || !fits(bound)) return bound;
    const int most = layers_of_stage(all);
    const int fewest = *std::partition_point(Layers(1), Layers(most), [&](int layers) {
      candidate.recompute_layers = layers;
      const RunBound lighter = run_bound(case_of(candidate));
      if (fits(lighter)) bound = lighter;
      return !fits(lighter);
    });
    candidate.recompute_layers = fewest < most ? fewest : 0;
    return bound;
  }

  // Decoder layers of the stage that has most.
  static int layers_of_stage(const Case& made) {
    return std::ranges::max(made.layout->stages, {}, &StageLayers::layers).layers;
  }

  // Copies only make passes wait: what a point takes without them bounds it, and planning them
  // takes longer than to run it. Periods of iterations that overlap are differences, which bound
  // nothing.
  [[nodiscard]] bool is_worth_running_without(const PlanCandidate& candidate) const {
    const PlanPoint& point = points_[candidate.id];
    return (point.offload || point.schedule->offloads()) && !candidate.ran_without &&
           !options_.exhaustive && question_.base.sync != OptimizerSync::kPostValidation;
  }

  void run_without_offload(PlanStep& step) const {
    PlanCandidate& candidate = step.candidate;
    candidate.ran_without = true;
    if (has_twin_without_offload(candidate.id) && ran_[candidate.id - 1] > 0) {
      candidate.bound = std::max(candidate.bound, ran_[candidate.id - 1]);
      return;
    }
    auto scenario = std::make_shared<const Scenario>(
        scenario_without_offload(question_, points_[candidate.id], candidate.layout));
    const Case made = batch_case(outline_of(scenario, scenario->schedules.front()));
    const Report report = simulate(made, nullptr, nullptr, Detail::kNumbers).report;
    candidate.bound = std::max(candidate.bound, report.iteration.value());
  }

  void evaluate(PlanStep& step) const {
    const PlanCandidate& candidate = step.candidate;
    PointRun point = run(candidate);
    if (candidate.recompute_layers > 0 && point.fits(question_) != MemoryFit::kYes) {
      point = run_heavier(candidate);
    }
    step.fate = point.fits(question_) == MemoryFit::kNo ? PlanFate::kUnfit : PlanFate::kPlanned;
    step.planned = std::move(point.planned);
    step.planned.id = candidate.id;
    step.memory = step.planned.peak;
  }

  [[nodiscard]] PlanPoint point_of(const PlanCandidate& candidate) const {
    PlanPoint point = points_[candidate.id];
    point.recompute_layers = candidate.recompute_layers;
    return point;
  }

  // The run of the fewest layers recomputed, more than the candidate's, that surely fits; of all
  // where none does.
  [[nodiscard]] PointRun run_heavier(PlanCandidate candidate) const {
    const int first = std::exchange(candidate.recompute_layers, 0) + 1;
    PointRun heaviest = run(candidate);
    if (heaviest.fits(question_) != MemoryFit::kYes) return heaviest;
    const Layers end(layers_of_stage(case_of(candidate)));
    (void)std::partition_point(Layers(first), end, [&](int layers) {
      candidate.recompute_layers = layers;
      PointRun lighter = run(candidate);
      const bool fits = lighter.fits(question_) == MemoryFit::kYes;
      if (fits) heaviest = std::move(lighter);
      return !fits;
    });
    return heaviest;
  }

  [[nodiscard]] PointRun run(const PlanCandidate& candidate) const {
    return run_point(question_, point_of(candidate), candidate.layout, Detail::kNumbers);
  }

  // Most runs do not get into the table: only of those that do it is asked why devices wait.
  void add_shares(Planned& planned) const {
    planned.shares = run_point(question_, planned.point, planned.balanced()).planned.shares;
  }

  void settle(PlanStep&& step) {
    const size_t id = step.candidate.id;
    const bool evaluated = step.fate == PlanFate::kPlanned || step.fate == PlanFate::kUnfit;
    counts_.evaluated += evaluated ? 1 : 0;
    if (evaluated) ran_[id] = step.planned.iteration.value();
    if (evaluated && fits_without_offload(id)) return;  // both were run at a time
    switch (step.fate) {
      case PlanFate::kWaits:
        queue_.push(step.candidate);
        break;
      case PlanFate::kRefused:
        ++counts_.refused;
        break;
      case PlanFate::kRepeated:
        ++counts_.repeated;
        break;
      case PlanFate::kTooLarge:
      case PlanFate::kUnfit:
        step.candidate.memory = step.memory;
        exclude(step.candidate, step.fate);
        break;
      case PlanFate::kPlanned:
        fits_[id] = step.planned.fits == MemoryFit::kYes ? 1 : 0;
        counts_.tight += step.planned.fits == MemoryFit::kTight ? 1 : 0;
        keep(std::move(step.planned));
        break;
    }
  }

  void exclude(const PlanCandidate& candidate, PlanFate fate) {
    ++(fate == PlanFate::kUnfit ? counts_.unfit : counts_.too_large);
    excluded_.push_back(candidate);
  }

  void keep(Planned planned) {
    if (shortlist_) {
      const bool run = runs(planned.id);
      shortlist_->offer(planned, run);
      if (!run) return;
    }
    ranking_.add(std::move(planned));
  }

  using ByMemory = std::priority_queue<PlanCandidate, std::vector<PlanCandidate>, PlanNeedsMore>;

  // Steps of a round, the least memory first; none whose bound is not below the nearest.
  std::vector<PlanStep> take_nearest(ByMemory& waiting, const std::optional<NearMiss>& nearest) {
    std::vector<PlanStep> steps;
    for (size_t run = 0; !waiting.empty() && steps.size() < kAtOnce && run < kRunAtOnce;) {
      const PlanCandidate& next = waiting.top();
      if (nearest && kBelow * next.memory - question_.limit() >= nearest->over) break;
      steps.push_back({next});
      steps.back().candidate.recompute_layers = 0;
      run += next.sharp ? 1 : 0;
      waiting.pop();
    }
    return steps;
  }

  // Bounds and runs what memory excluded, the least first, until no bound left is below what was
  // found.
  std::optional<NearMiss> nearest_to_fit() {
    std::erase_if(excluded_, [](const PlanCandidate& each) { return each.memory == Bytes(0); });
    ByMemory waiting(PlanNeedsMore{}, std::move(excluded_));
    std::optional<NearMiss> nearest;
    while (!stopped_) {
      std::vector<PlanStep> steps = take_nearest(waiting, nearest);
      if (steps.empty()) break;
      find_splits(steps);
      in_parallel(steps.size(), [&](size_t i) {
        const bool sharp = steps[i].candidate.sharp;
        attempt(steps[i], [&] { sharp ? evaluate(steps[i]) : sharpen(steps[i]); });
      });
      for (PlanStep& step : steps) {
        if (step.fate == PlanFate::kUnfit) {
          NearMiss miss = miss_of(question_, std::move(step.planned));
          if (!nearest || is_nearer(miss, *nearest)) nearest = std::move(miss);
        } else if (step.candidate.sharp && step.memory > Bytes(0)) {
          waiting.push(step.candidate);
        }
      }
    }
    if (nearest && !nearest->host) nearest->change = change_that_fits(question_, nearest->planned);
    return nearest;
  }

  [[nodiscard]] Outline outline(const PlanPoint& point, const Layout* layout,
                                std::shared_ptr<const LayerCosts> costs) const {
    auto scenario = std::make_shared<const Scenario>(scenario_of(question_, point, layout));
    const ScheduleChoice& choice = scenario->schedules.front();
    return outline_of(scenario, choice, std::move(costs));
  }

  void report_progress() const {
    if (!options_.progress) return;
    PlanProgress progress{counts_.points, counts_.points - queue_.size(), counts_.evaluated};
    progress.best = shortlist_ ? shortlist_->best() : std::nullopt;
    if (!ranking_.rows().empty()) progress.best = ranking_.rows().front()->iteration;
    options_.progress(progress);
  }

  // Runs `work` for every number below `count`, unless the search is to stop.
  template <class Work>
  void in_parallel(size_t count, Work work) {
    std::atomic<bool> stop = false;
    team_.run(count, [&](size_t i) {
      if (!stop && options_.stop && options_.stop()) stop = true;
      if (!stop) work(i);
    });
    stopped_ = stopped_ || stop;
  }

  const PlanQuestion& question_;
  const PlanOptions& options_;
  std::vector<PlanPoint> points_;
  std::vector<std::shared_ptr<const LayerCosts>> costs_;  // by id
  PlanDivisions divisions_;
  BalancedLayouts layouts_;
  std::vector<std::uint8_t> fits_;  // by id: was run, and fits
  std::vector<double> ran_;         // by id: the iteration of the run; 0 where there was none
  ThreadTeam team_;
  bool stopped_ = false;
  std::optional<Shortlist> shortlist_;
  bool none_runs_ = false;  // the framework of the shortlist has no settings for the model
  Queue queue_;
  std::vector<PlanCandidate> too_slow_;
  Ranking ranking_;
  std::vector<PlanCandidate> excluded_;  // by memory
  PlanCounts counts_;
};

}  // namespace

PlanResult plan(const PlanQuestion& question, const PlanOptions& options) {
  return Planner(question, options).run();
}

}  // namespace pipesim
