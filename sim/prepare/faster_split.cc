#include "sim/prepare/faster_split.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/case/graph_options.h"
#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/engine/engine.h"
#include "sim/prepare/critical_paths.h"
#include "sim/prepare/memory_room.h"
#include "sim/prepare/microbatch_order.h"

namespace pipesim {
namespace {

constexpr int kFew = 4;                // splits that are simulated together
constexpr double kShorter = 1 - 1e-9;  // by less than this, iterations are equal

Outline quiet(const Outline& outline) {
  auto scenario = std::make_shared<Scenario>(*outline.scenario);
  scenario->engine = EngineKind::kReplay;
  scenario->perturb = {};
  Outline same = outline;
  same.scenario = std::move(scenario);
  return same;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Split {
  Layout layout;
  long empty;                  // stages
  Bytes over = Bytes(kNever);  // beyond the capacity: of what cannot be run, any number
  Seconds iteration = Seconds(kNever);
  std::shared_ptr<const Program> program = {};  // where each has its own
  std::vector<double> load = {};  // of each device: seconds, or bytes where it does not fit

  [[nodiscard]] bool fits() const { return over == Bytes(0); }
  [[nodiscard]] bool is_better_than(const Split& other) const {
    if (over != other.over) return over < other.over;
    return empty < other.empty || (empty == other.empty && iteration < kShorter * other.iteration);
  }
};

// The better comes first.
auto rank(const Split& split) { return std::tuple(split.over, split.empty, split.iteration); }

// The best, of equal ones the first. Requires one.
const Split& best_of(const std::vector<Split>& splits) {
  return *std::ranges::min_element(
      splits, [](const Split& a, const Split& b) { return a.is_better_than(b); });
}

// The splits that were simulated, each once: under one program, or each under its own.
class Simulations {
 public:
  Simulations(const Outline& outline, std::shared_ptr<const Program> program,
              ThreadTeam* planners = nullptr)
      : outline_(outline), program_(std::move(program)), planners_(planners) {}

  void add(const std::vector<Layout>& layouts) {
    std::vector<Case> cases;
    std::vector<size_t> numbers;
    for (const Layout& layout : layouts) {
      if (knows(layout)) continue;
      simulated_.push_back({.layout = layout, .empty = empty_stages(layout)});
      try {
        cases.push_back(case_of(layout));
        numbers.push_back(simulated_.size() - 1);
      } catch (const InfeasibleError&) {  // its memory limit
        continue;
      }
    }
    if (planners_ != nullptr) plan(cases, numbers);
    const std::vector<Simulated> all = simulate_all(cases, reuse_);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].result) note(*all[i].result, simulated_[numbers[i]]);
    }
  }

  [[nodiscard]] Case case_of(const Layout& layout) const {
    Case made = batch_case(outline_, &layout);
    if (program_) run_under(program_, made);
    return made;
  }
  [[nodiscard]] bool knows(const Layout& layout) const {
    return std::ranges::find(simulated_, layout, &Split::layout) != simulated_.end();
  }
  [[nodiscard]] const std::vector<Split>& simulated() const { return simulated_; }
  Reuse& reuse() { return reuse_; }

 private:
  static void run_under(std::shared_ptr<const Program> program, Case& made) {
    made.choice.program = std::move(program);
    made.problem.recompute_chunks = 0;  // its R stand in the program
  }

  // Plans each split, and drops those without a plan.
  void plan(std::vector<Case>& cases, std::vector<size_t>& numbers) {
    planners_->run(cases.size(), [&](size_t i) {
      try {
        simulated_[numbers[i]].program = make_program(cases[i]);
      } catch (const InputError&) {
        return;
      } catch (const InfeasibleError&) {  // its memory limit
        return;
      }
    });
    size_t kept = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto& program = simulated_[numbers[i]].program;
      if (!program) continue;
      run_under(program, cases[i]);
      if (kept < i) cases[kept] = std::move(cases[i]);
      numbers[kept++] = numbers[i];
    }
    cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(kept), cases.end());
  }

  void note(const Result& result, Split& split) const {
    const Report& report = result.report;
    const auto& capacity = outline_.scenario->modelled->capacity;
    split.over = capacity ? std::max(Bytes(0), *report.peak_memory - *capacity) : Bytes(0);
    split.iteration = report.iteration;
    for (int device = 0; device < outline_.placement.devices(); ++device) {
      const DeviceReport& of = report.devices[device];
      split.load.push_back(split.fits() ? of.busy.value() : of.peak_memory()->value());
    }
  }

  const Outline& outline_;
  std::shared_ptr<const Program> program_;
  ThreadTeam* planners_;  // of those under their own
  Reuse reuse_;
  std::vector<Split> simulated_;
};

// The starts, and then the few that the search would try next, while the budget lasts.
template <class Search>
std::vector<Split> splits_tried(Search search, const std::vector<Layout>& starts, long budget) {
  search.add(starts);
  for (std::vector<Layout> few = search.next_few(); !few.empty(); few = search.next_few()) {
    const long left = budget - std::ssize(search.simulated());
    if (left <= 0) break;
    if (std::ssize(few) > left) few.resize(left);
    search.add(few);
  }
  return search.simulated();
}

// Splits of one order of passes: the schedule's, where it does not follow the split, or a program.
class OrderSearch {
 public:
  OrderSearch(const Outline& outline, const std::shared_ptr<const Program>& program)
      : outline_(outline), planned_(program != nullptr), all_(outline, program), paths_(outline) {}

  [[nodiscard]] const std::vector<Split>& simulated() const { return all_.simulated(); }

  [[nodiscard]] std::vector<Layout> next_few() {
    const Split& best = best_of(all_.simulated());
    if (!best.fits()) return {};
    return paths_.near(best.layout, kFew,
                       [&](const Layout& layout) { return !all_.knows(layout) && fits(layout); });
  }

  void add(const std::vector<Layout>& layouts) {
    const size_t before = all_.simulated().size();
    all_.add(layouts);
    for (size_t i = before; i < all_.simulated().size(); ++i) {
      if (all_.simulated()[i].fits()) trace(all_.simulated()[i]);
    }
  }

 private:
  void trace(const Split& split) {
    const Case made = all_.case_of(split.layout);
    Reuse once;  // what is kept knows one cost for all microbatches of a stage
    Reuse& reuse = made.problem.kinds.empty() ? all_.reuse() : once;
    const auto program = make_program(made, &reuse);
    const auto graph =
        reuse.graph(program, made.problem, ranks_of(*made.scenario), graph_options(made, 1));
    paths_.add(made, *graph, engine_->run(*graph, {}, {}), split.iteration);
    const auto& capacity = made.scenario->modelled->capacity;
    if (room_ || !capacity || planned_ || !program->memory_follows_order()) return;
    room_.emplace(outline_, *capacity);
    room_->observe(*program);
  }

  // A new plan may hold less, and copies to the host make room that this check does not see.
  bool fits(const Layout& layout) {
    if (!room_) return true;
    const Placement& place = outline_.placement;
    for (int device = 0; device < place.devices(); ++device) {
      if (!room_->fits(device, stages_of(layout, place, device))) return false;
    }
    return true;
  }

  const Outline& outline_;
  bool planned_;
  Simulations all_;
  CriticalPaths paths_;
  std::optional<MemoryRoom> room_;
  std::unique_ptr<Engine> engine_ = make_replay_engine();
};

// Splits of a schedule whose order follows the split. Turns alternate: splits found for a good
// one's order are planned, then splits with a layer moved from a full device to an empty one.
class PlannedSearch {
 public:
  // The program of a stream follows the number of its iterations.
  PlannedSearch(const Outline& outline, bool stream)
      : outline_(outline), all_(outline, nullptr, stream ? nullptr : &team_) {}

  void add(const std::vector<Layout>& layouts) { all_.add(layouts); }
  [[nodiscard]] const std::vector<Split>& simulated() const { return all_.simulated(); }

  [[nodiscard]] std::vector<Layout> next_few() {
    std::vector<const Split*> splits;
    for (const Split& split : all_.simulated()) splits.push_back(&split);
    std::ranges::stable_sort(splits, {}, [](const Split* split) { return rank(*split); });
    const Split& best = *splits.front();
    std::vector<Layout> few;
    for (const Split* split : splits) {
      std::vector<Layout>& near = near_to(*split).layouts;
      for (; few.size() < kFew && !near.empty(); near.pop_back()) {
        const bool more_empty = best.fits() && empty_stages(near.back()) > best.empty;
        if (!more_empty && !all_.knows(near.back())) few.push_back(near.back());
      }
      if (!few.empty()) break;
    }
    return few;
  }

 private:
  // Layouts to plan for, the first last.
  struct Near {
    Layout of;
    std::vector<Layout> layouts;
  };

  Near& near_to(const Split& split) {
    const auto known = std::ranges::find(near_, split.layout, &Near::of);
    if (known != near_.end()) return *known;
    const std::vector<Layout> moved = moved_layouts(split);
    const std::vector<Layout> found = found_layouts(split);
    std::vector<Layout> layouts;
    for (size_t i = 0; i < std::max(moved.size(), found.size()); ++i) {
      if (i < found.size()) layouts.push_back(found[i]);
      if (i < moved.size()) layouts.push_back(moved[i]);
    }
    std::ranges::reverse(layouts);
    near_.push_back({split.layout, std::move(layouts)});
    return near_.back();
  }

  // For the order that is planned for the split, the best first.
  [[nodiscard]] std::vector<Layout> found_layouts(const Split& split) const {
    constexpr long kOfOneOrder = 32;
    if (!split.fits() || !split.program) return {};
    std::vector<Split> found =
        splits_tried(OrderSearch(outline_, split.program), {split.layout}, kOfOneOrder);
    std::ranges::stable_sort(found, {}, rank);
    std::vector<Layout> layouts;
    for (Split& each : found) layouts.push_back(std::move(each.layout));
    return layouts;
  }

  // From the stages of the devices with most to those of the ones with least.
  [[nodiscard]] std::vector<Layout> moved_layouts(const Split& split) const {
    std::vector<int> order(split.layout.stages.size());
    std::iota(order.begin(), order.end(), 0);
    if (!split.load.empty()) {
      std::ranges::stable_sort(
          order, {}, [&](int stage) { return split.load[outline_.placement.device(stage)]; });
    }
    std::vector<Layout> layouts;
    for (size_t i = order.size(); i-- > 0;) {
      if (split.layout.stages[order[i]].layers == 0) continue;
      for (const int to : order) {
        if (to != order[i]) layouts.push_back(with_layer_moved(split.layout, order[i], to));
      }
    }
    return layouts;
  }

  const Outline& outline_;
  ThreadTeam team_{kFew};
  Simulations all_;
  std::vector<Near> near_;
};

long passes_of(const Case& made) {
  return 3L * made.placement.virtual_stages() * made.problem.shape.units();
}

// Splits that may be simulated, or planned for where each takes a plan.
long budget(const Case& made, bool planned) {
  constexpr long kPasses = 3'000'000;
  const long most = kPasses / passes_of(made);
  if (!planned) return std::min(128L, most);
  constexpr long kPlannedPasses = 100'000;  // short programs are soon planned
  return std::clamp(kPlannedPasses / passes_of(made), std::min(64L, most), 256L);
}

std::vector<Layout> starts(const Outline& outline, const Layout& found) {
  std::vector<Layout> layouts{found};
  for (const auto& [embedding, loss] : {std::pair{false, false}, {false, true}, {true, true}}) {
    try {
      const EvenSplit split{.count_embedding = embedding, .count_loss = loss};
      layouts.push_back(even_layout(outline.scenario->modelled->model, outline.placement, split));
    } catch (const InfeasibleError&) {  // its numbers do not divide
      continue;
    }
  }
  return layouts;
}

}  // namespace

bool has_fixed_order(const Case& made) {
  if (made.choice.program) return true;
  const Schedule& schedule = schedule_of(made.choice);
  return schedule.fixed_order(for_planning(made.problem, schedule));
}

std::optional<Layout> faster_split(const Outline& outline, const Layout& found) {
  const Outline same = quiet(outline);
  const Case made = batch_case(same, &found);
  const bool planned = !has_fixed_order(made);
  const long most = std::max(1L, budget(made, planned));
  const std::vector<Split> splits =
      planned
          ? splits_tried(PlannedSearch(same, made.stream.has_value()), starts(same, found), most)
          : splits_tried(OrderSearch(same, nullptr), starts(same, found), most);
  const Split& best = best_of(splits);
  return best.fits() ? std::optional(best.layout) : std::nullopt;
}

}  // namespace pipesim
