#include "sim/prepare/faster_split.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/case/make_case.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kShorter = 1 - 1e-9;  // by less than this, iterations are equal

Outline quiet(const Outline& outline) {
  auto scenario = std::make_shared<Scenario>(*outline.scenario);
  scenario->engine = EngineKind::kReplay;
  scenario->perturb = {};
  Outline same = outline;
  same.scenario = std::move(scenario);
  return same;
}

bool is_empty(const StageLayers& stage) {
  return stage.layers == 0 && stage.mtp == 0 && !stage.embedding && !stage.output;
}

class Search {
 public:
  explicit Search(const Outline& outline) : outline_(quiet(outline)) {}

  Layout run(const Layout& found) {
    std::vector<Layout> starts{found};
    for (Layout& even : even_layouts()) {
      if (std::ranges::find(starts, even) == starts.end()) starts.push_back(std::move(even));
    }
    const long each = budget(found) / std::ssize(starts);
    Split best;
    best.layout = found;
    for (const Layout& start : starts) {
      best_ = {};
      left_ = std::max(1L, each);
      while (best_.busy.empty() ? takes_best_of({start}) : takes_a_move()) {
      }
      if (best_.is_better_than(best)) best = best_;
    }
    return best.layout;
  }

 private:
  struct Split {
    Layout layout;
    long empty = std::numeric_limits<long>::max();  // stages
    Seconds iteration;
    std::vector<Seconds> busy;  // by device of the pipeline

    [[nodiscard]] bool is_better_than(const Split& other) const {
      return empty < other.empty ||
             (empty == other.empty && iteration < kShorter * other.iteration);
    }
  };

  // How many splits may be simulated.
  [[nodiscard]] long budget(const Layout& layout) const {
    constexpr long kFixed = 256;   // splits of one order of passes
    constexpr long kPlanned = 32;  // where every split is planned for
    constexpr long kPasses = 3'000'000;
    const Case made = make_case(outline_, &layout);
    const Shape& shape = made.problem.shape;
    const long passes = 3L * made.placement.virtual_stages() * shape.units();
    const bool fixed = made.choice.program || is_fixed(made);
    return std::min(fixed ? kFixed : kPlanned, kPasses / passes);
  }

  static bool is_fixed(const Case& made) {
    const Schedule& schedule = schedule_of(made.choice);
    return schedule.fixed_order(for_planning(made.problem, schedule));
  }

  // Whether one of them that fits is better than the best, which it then is.
  bool takes_best_of(std::vector<Layout> layouts) {
    if (std::ssize(layouts) > left_) layouts.resize(left_);
    left_ -= std::ssize(layouts);
    std::vector<Case> cases;
    for (const Layout& layout : layouts) cases.push_back(make_case(outline_, &layout));
    const std::vector<Simulated> all = simulate_all(cases, reuse_);
    bool better = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].result || !all[i].result->fits.value_or(true)) continue;
      Split split = split_of(std::move(layouts[i]), all[i].result->report);
      if (!split.is_better_than(best_)) continue;
      best_ = std::move(split);
      better = true;
    }
    return better;
  }

  [[nodiscard]] Split split_of(Layout layout, const Report& report) const {
    Split split;
    split.empty = std::ranges::count_if(layout.stages, is_empty);
    split.layout = std::move(layout);
    split.iteration = report.iteration;
    for (int device = 0; device < outline_.placement.devices(); ++device) {
      split.busy.push_back(report.devices[device].busy);
    }
    return split;
  }

  [[nodiscard]] std::vector<Layout> even_layouts() const {
    std::vector<Layout> layouts;
    for (const auto& [embedding, loss] : {std::pair{false, false}, {false, true}, {true, true}}) {
      try {
        const EvenSplit split{.count_embedding = embedding, .count_loss = loss};
        layouts.push_back(
            even_layout(outline_.scenario->modelled->model, outline_.placement, split));
      } catch (const InfeasibleError&) {  // its numbers do not divide
        continue;
      }
    }
    return layouts;
  }

  // One layer from a stage to another.
  struct Move {
    int from, to;
  };

  // Whether one of the next moves was better: they are simulated a few at a time.
  bool takes_a_move() {
    constexpr size_t kFew = 16;
    const std::vector<Move> all = moves();
    std::vector<Layout> few;
    for (size_t i = 0; i < all.size() && left_ > 0; ++i) {
      few.push_back(moved(best_.layout, all[i]));
      if (few.size() < kFew && i + 1 < all.size()) continue;
      if (takes_best_of(std::exchange(few, {}))) return true;
    }
    return false;
  }

  // Into an empty stage first, then from the stages of the busiest devices, each to those of the
  // least busy first.
  [[nodiscard]] std::vector<Move> moves() const {
    std::vector<Move> moves;
    const std::vector<StageLayers>& stages = best_.layout.stages;
    const auto add = [&](int from, int to) {
      if (stages[from].layers > 0 && from != to) moves.push_back({from, to});
    };
    const std::vector<int> idlest = by_busy_time();
    const auto empty = std::ranges::find_if(stages, is_empty);
    for (const int from : idlest) {
      if (empty != stages.end()) add(from, static_cast<int>(empty - stages.begin()));
    }
    for (size_t i = idlest.size(); i-- > 0;) {
      for (const int to : idlest) add(idlest[i], to);
    }
    return moves;
  }

  // The embedding stays first and the output last, MTP modules where they are.
  static Layout moved(Layout layout, const Move& move) {
    --layout.stages[move.from].layers;
    ++layout.stages[move.to].layers;
    int first = 0;
    for (StageLayers& stage : layout.stages) {
      stage.first = first;
      first += stage.layers;
    }
    return layout;
  }

  // Stages, those of the least busy devices first.
  [[nodiscard]] std::vector<int> by_busy_time() const {
    std::vector<int> order(best_.layout.stages.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, {}, [this](int stage) { return best_.busy[outline_.placement.device(stage)]; });
    return order;
  }

  Outline outline_;
  Reuse reuse_;
  Split best_;
  long left_ = 0;
};

}  // namespace

Layout faster_split(const Outline& outline, const Layout& found) {
  return Search(outline).run(found);
}

}  // namespace pipesim
