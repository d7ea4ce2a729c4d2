#include "sim/prepare/critical_paths.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/graph/critical_path.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

std::vector<int> numbers_of(const Layout& layout) {
  std::vector<int> numbers;
  numbers.reserve(layout.stages.size());
  for (const StageLayers& stage : layout.stages) numbers.push_back(stage.layers);
  return numbers;
}

bool is_empty(const StageLayers& stage) {
  return stage.layers == 0 && stage.mtp == 0 && !stage.embedding && !stage.output;
}

double product(const auto& numbers, const auto& seconds) {
  return std::inner_product(numbers.begin(), numbers.end(), seconds.begin(), 0.0);
}

}  // namespace

// From one split to those that differ by a layer.
class CriticalPaths::Step {
 public:
  struct Next {
    long empty;  // stages
    double longest;
    int from, to;
  };

  Step(const CriticalPaths& all, const Layout& layout)
      : layout_(layout), empty_(empty_stages(layout)) {
    for (StageLayers stage : layout.stages) {
      now_.push_back(all.seconds(stage));
      ++stage.layers;
      more_.push_back(difference(all.seconds(stage), now_.back()));
      stage.layers = std::max(0, stage.layers - 2);
      less_.push_back(difference(all.seconds(stage), now_.back()));
    }
    for (const Path& path : all.paths_) add(path);
    keep_relevant();
  }

  // At most `count` moves of a layer: those with the fewest empty stages, then with the shortest
  // longest path.
  [[nodiscard]] std::vector<Next> next(size_t count) const {
    const int stages = static_cast<int>(now_.size());
    std::vector<Next> next;
    for (int from = 0; from < stages; ++from) {
      if (layout_.stages[from].layers == 0) continue;
      for (int to = 0; to < stages; ++to) {
        if (to == from) continue;
        next.push_back({empty_with(from, to), longest_with(from, to), from, to});
      }
    }
    std::ranges::stable_sort(next, {},
                             [](const Next& each) { return std::pair(each.empty, each.longest); });
    if (next.size() > count) next.resize(count);
    return next;
  }

 private:
  // A path as it is here, and with a layer more or less on a stage.
  struct Known {
    double seconds;
    std::vector<double> more, less;
  };

  static PassSeconds difference(PassSeconds of, const PassSeconds& from) {
    for (size_t pass = 0; pass < kPasses; ++pass) of[pass] -= from[pass];
    return of;
  }

  void add(const Path& path) {
    Known known{path.rest, {}, {}};
    for (size_t s = 0; s < now_.size(); ++s) {
      known.seconds += product(path.passes[s], now_[s]);
      known.more.push_back(product(path.passes[s], more_[s]));
      known.less.push_back(product(path.passes[s], less_[s]));
    }
    known_.push_back(std::move(known));
  }

  // Keeps the paths that a layer may make the longest, the longest first.
  void keep_relevant() {
    std::ranges::stable_sort(known_, std::ranges::greater(), &Known::seconds);
    const Known& longest = known_.front();
    const double least = longest.seconds + std::ranges::min(longest.less);
    std::erase_if(known_, [least](const Known& path) {
      return path.seconds + std::ranges::max(path.more) < least;
    });
  }

  [[nodiscard]] long empty_with(int from, int to) const {
    StageLayers left = layout_.stages[from];
    --left.layers;
    return empty_ + (is_empty(left) ? 1 : 0) - (is_empty(layout_.stages[to]) ? 1 : 0);
  }

  [[nodiscard]] double longest_with(int from, int to) const {
    double longest = 0;
    for (const Known& path : known_) {
      longest = std::max(longest, path.seconds + path.less[from] + path.more[to]);
    }
    return longest;
  }

  const Layout& layout_;
  long empty_;                                  // stages
  std::vector<PassSeconds> now_, more_, less_;  // of every stage, and of a layer there
  std::vector<Known> known_;
};

CriticalPaths::CriticalPaths(const Outline& outline)
    : model_(outline.scenario->modelled->model), known_(outline.setting.has_value()) {
  if (!known_) {
    weights_.fill(weights_by_work(*outline.scenario->modelled));
    return;
  }
  const LayerCosts& costs = *outline.costs;
  std::array<EnumArray<LayerKind, Seconds>, kPasses> of{};
  for (const LayerKind kind : kLayerKinds) {
    of[kForward][kind] = costs[kind].forward.total();
    of[kBackward][kind] = costs[kind].backward_input.total();
    of[kWeight][kind] = costs[kind].backward_weight.total();
    if (is_layer(kind)) of[kAgain][kind] = of[kForward][kind];
  }
  for (size_t pass = 0; pass < kPasses; ++pass) weights_[pass] = layer_seconds(model_, of[pass]);
}

std::vector<CriticalPaths::Part> CriticalPaths::parts_of(const TaskClass& of,
                                                         const Placement& place) {
  const int device = static_cast<int>(of.device) % place.devices();
  const auto stage = [&](int chunk) {
    return place.model_stage(place.virtual_stage(device, chunk));
  };
  std::vector<Part> parts;
  if (of.kind == TaskKind::kOptimizer) {  // about as what W computes
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      parts.push_back({stage(chunk), kWeight});
    }
  }
  if (of.kind != TaskKind::kCompute) return parts;
  const PassWork work = work_of(of.pass);
  if (work.again) parts.push_back({stage(of.chunk), kAgain});
  if (work.forward) parts.push_back({stage(of.chunk), kForward});
  if (work.input_gradient) parts.push_back({stage(of.chunk_back), kBackward});
  if (work.weight_gradient) parts.push_back({stage(of.chunk_back), kWeight});
  return parts;
}

void CriticalPaths::add(const Case& made, const TaskGraph& graph, const Timeline& timeline,
                        Seconds iteration) {
  const Layout& layout = *made.layout;
  Path path{iteration.value(), std::vector<PassSeconds>(layout.stages.size())};
  for (const TaskId task : critical_path(graph, timeline)) {
    const std::vector<Part> parts = parts_of(graph.task_class(task), made.placement);
    if (parts.empty()) continue;
    const double took = timeline.end[task] - timeline.start[task];
    double alone = 0;
    for (const Part& part : parts) alone += seconds(layout.stages[part.stage])[part.pass];
    const double unknown = known_ ? 1 : 0;
    path.rest -= took;
    for (const Part& part : parts) {
      path.passes[part.stage][part.pass] += alone > 0 ? took / alone : unknown;
    }
  }
  paths_.push_back(std::move(path));
}

std::vector<Layout> CriticalPaths::near(const Layout& from, size_t count,
                                        const std::function<bool(const Layout&)>& wanted) const {
  constexpr size_t kSteps = 4;           // that are taken in any case
  constexpr size_t kMostMoves = 30'000;  // that are looked at where few are wanted
  constexpr size_t kWidth = 32;
  const size_t most_steps = kSteps + kMostMoves / (from.stages.size() * from.stages.size());
  const long empty = empty_stages(from);
  std::vector<Layout> nodes{from};
  std::set<std::vector<int>> seen{numbers_of(from)};
  using Node = std::tuple<long, double, size_t>;  // empty stages, longest path, number
  std::set<Node> open{{empty, 0, 0}};
  std::vector<Node> found;
  for (size_t step = 0; step < most_steps && !open.empty(); ++step) {
    if (step >= kSteps && found.size() >= count) break;
    const Layout layout = nodes[std::get<size_t>(open.extract(open.begin()).value())];
    for (const Step::Next& next : Step(*this, layout).next(kWidth)) {
      Layout moved = with_layer_moved(layout, next.from, next.to);
      if (next.empty > empty || !seen.insert(numbers_of(moved)).second) continue;
      const Node node{next.empty, next.longest, nodes.size()};
      if (wanted(moved)) found.push_back(node);
      open.insert(node);
      nodes.push_back(std::move(moved));
    }
  }
  std::ranges::sort(found);
  if (found.size() > count) found.resize(count);
  std::vector<Layout> layouts;
  for (const Node& node : found) layouts.push_back(std::move(nodes[std::get<size_t>(node)]));
  return layouts;
}

CriticalPaths::PassSeconds CriticalPaths::seconds(const StageLayers& stage) const {
  PassSeconds seconds{};
  for (size_t pass = 0; pass < kPasses; ++pass) {
    seconds[pass] = stage_seconds(model_, stage, weights_[pass]).value();
  }
  return seconds;
}

long empty_stages(const Layout& layout) { return std::ranges::count_if(layout.stages, is_empty); }

Layout with_layer_moved(Layout layout, int from, int to) {
  --layout.stages[from].layers;
  ++layout.stages[to].layers;
  int first = 0;
  for (StageLayers& stage : layout.stages) {
    stage.first = first;
    first += stage.layers;
  }
  return layout;
}

}  // namespace pipesim
