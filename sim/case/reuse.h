// Programs, orders and graphs that the next simulation of one shape can use: what many what-ifs of
// few shapes keep between them.
//
// The results are those without it, to the last bit. Bounded memory: what was used longest ago
// goes first. For one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "sim/graph/build_options.h"
#include "sim/graph/renumber.h"
#include "sim/graph/task_graph.h"
#include "sim/metrics/analyze.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/planners.h"
#include "sim/planning/schedule.h"

namespace pipesim {

class Reuse : public OrderSource {
 public:
  static constexpr size_t kUsualBytes = size_t{128} << 20;
  explicit Reuse(size_t most_bytes = kUsualBytes) : most_bytes_(most_bytes) {}

  // The result of `make`, kept for such problems of the schedule. Requires a fixed order there.
  std::shared_ptr<const Program> program(
      const Schedule& schedule, const Problem& problem,
      const std::function<std::shared_ptr<const Program>()>& make);
  std::shared_ptr<const Program> order(const Schedule& schedule, const Problem& problem) override;
  // By a graph, from the second time on.
  std::optional<PlanTime> time(const Program& order, const Problem& problem) override;

  [[nodiscard]] bool keeps(const Program* program) const;

  // Does the work of build_task_graph. The graph of a kept program or order becomes the next one,
  // once nobody else holds it.
  std::shared_ptr<const TaskGraph> graph(const std::shared_ptr<const Program>& program,
                                         const Problem& problem,
                                         const std::vector<std::vector<int>>& ranks,
                                         const BuildOptions& options);

  // Does the work of peaks_in_order, for a kept graph only where its bytes have changed.
  std::vector<Bytes> peaks(const TaskGraph& graph);

  [[nodiscard]] size_t bytes() const;

 private:
  struct KeptGraph {
    GraphStructure structure;
    std::shared_ptr<TaskGraph> graph;
    KeptPeaks peaks = {};
  };
  // The part of a problem that decides a fixed order.
  struct Key {
    bool whole = false;  // a program, which may recompute; or the order alone
    const Schedule* schedule = nullptr;
    Shape shape;
    int recompute_chunks = 0;
    VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
    std::map<std::string, OptionValue, std::less<>> options;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    std::shared_ptr<const Program> program;
    std::vector<KeptGraph> graphs = {};
    bool timed = false;
    [[nodiscard]] size_t bytes() const;
  };
  std::shared_ptr<const Program> kept(bool whole, const Schedule& schedule, const Problem& problem,
                                      const std::function<std::shared_ptr<const Program>()>& make);
  std::list<Entry>::iterator find(const Program* program);
  void make_room();

  size_t most_bytes_;
  std::list<Entry> entries_;  // the latest first
};

}  // namespace pipesim
