// Critical paths of simulated splits, which bound the iterations of splits near by.
//
// A path exists in every split of the same order of passes. Its passes take the seconds of their
// stages' layers; all else on it stays. So the longest known path is a lower bound on the iteration
// of another split. The bound is approximate where passes overlap or costs are given, and for the
// optimizer's step, which is taken to grow as W does.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "models/layout.h"
#include "sim/case/case.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

class CriticalPaths {
 public:
  explicit CriticalPaths(const Outline& outline);

  // That of the case's timeline, whose iteration takes so long.
  void add(const Case& made, const TaskGraph& graph, const Timeline& timeline, Seconds iteration);

  // At most `count` splits that are `wanted`, those with the fewest empty stages first, and of
  // these those with the shortest longest path. They are sought from `from` on, one layer at a
  // time, and leave no more stages empty. O(steps x (stages^2 + stages x paths) x paths).
  [[nodiscard]] std::vector<Layout> near(const Layout& from, size_t count,
                                         const std::function<bool(const Layout&)>& wanted) const;

 private:
  enum Pass : size_t { kForward, kBackward, kWeight, kAgain, kPasses };
  using PassSeconds = std::array<double, kPasses>;
  struct Part {  // of a task
    int stage;
    Pass pass;
  };
  struct Path {
    double rest;                      // seconds beside its passes
    std::vector<PassSeconds> passes;  // their numbers, by stage
  };
  class Step;
  static std::vector<Part> parts_of(const TaskClass& of, const Placement& place);
  [[nodiscard]] PassSeconds seconds(const StageLayers& stage) const;

  const Transformer& model_;
  bool known_;  // whether layers' seconds are, or else their FLOPs
  std::array<LayerSeconds, kPasses> weights_;
  std::vector<Path> paths_;
};

// Stages that hold nothing.
long empty_stages(const Layout& layout);

// One layer from a stage to another. The embedding stays first and the output last, MTP modules
// where they are.
Layout with_layer_moved(Layout layout, int from, int to);

}  // namespace pipesim
