#include "sim/case/reuse.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/engine/lanes.h"
#include "sim/graph/build.h"

namespace pipesim {
namespace {

bool is_of(const TaskGraph& graph, const std::shared_ptr<const Program>& program,
           const std::vector<std::vector<int>>& ranks) {
  return graph.pipelines().front().program == program &&
         std::ranges::equal(graph.pipelines(), ranks, {}, &PipelineInstance::rank_of_device);
}

}  // namespace

size_t Reuse::Entry::bytes() const {
  size_t bytes = program->size() * sizeof(Pass);
  for (const KeptGraph& kept : graphs) bytes += kept.graph->resident_bytes();
  return bytes;
}

size_t Reuse::bytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes();
  return bytes;
}

// The latest program and its latest graph stay whatever their size.
void Reuse::make_room() {
  size_t all = bytes();
  while (all > most_bytes_ && entries_.size() > 1) {
    all -= entries_.back().bytes();
    entries_.pop_back();
  }
  auto& graphs = entries_.front().graphs;
  while (all > most_bytes_ && graphs.size() > 1) {
    all -= graphs.front().graph->resident_bytes();
    graphs.erase(graphs.begin());
  }
}

std::shared_ptr<const Program> Reuse::kept(
    bool whole, const Schedule& schedule, const Problem& problem,
    const std::function<std::shared_ptr<const Program>()>& make) {
  Key key{whole,          &schedule, problem.shape, problem.recompute_chunks, problem.vocabulary,
          problem.options};
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.push_front({std::move(key), make()});
    make_room();
  }
  return entries_.front().program;
}

std::shared_ptr<const Program> Reuse::program(
    const Schedule& schedule, const Problem& problem,
    const std::function<std::shared_ptr<const Program>()>& make) {
  return kept(true, schedule, problem, make);
}

std::shared_ptr<const Program> Reuse::order(const Schedule& schedule, const Problem& problem) {
  return kept(false, schedule, problem,
              [&] { return std::make_shared<const Program>(schedule.plan(problem)); });
}

// One evaluation takes less than to build a graph.
std::optional<PlanTime> Reuse::time(const Program& order, const Problem& problem) {
  const auto entry = find(&order);
  if (entry == entries_.end() || !std::exchange(entry->timed, true)) return std::nullopt;
  std::vector<int> ranks(order.shape().devices);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto of = graph(entry->program, problem, {ranks}, {});
  const std::vector<std::vector<double>> seconds{seconds_of(of->classes())};
  const RunTimes times = replay_lanes(*of, seconds).front();
  PlanTimer timer(problem.objective);
  for (const DeviceTimes& device : times) {
    timer.add(std::round(1e12 * device.first_start), std::round(1e12 * device.last_end));
  }
  return timer.time();
}

std::list<Reuse::Entry>::iterator Reuse::find(const Program* program) {
  return std::ranges::find(entries_, program,
                           [](const Entry& entry) { return entry.program.get(); });
}

bool Reuse::keeps(const Program* program) const {
  return std::ranges::any_of(
      entries_, [program](const Entry& entry) { return entry.program.get() == program; });
}

std::shared_ptr<const TaskGraph> Reuse::graph(const std::shared_ptr<const Program>& program,
                                              const Problem& problem,
                                              const std::vector<std::vector<int>>& ranks,
                                              const BuildOptions& options) {
  const auto build = [&] {
    return std::make_shared<TaskGraph>(build_task_graph(program, problem, ranks, options));
  };
  const auto entry = find(program.get());
  if (entry == entries_.end()) return build();
  const GraphStructure structure = structure_of(options);
  entries_.splice(entries_.begin(), entries_, entry);
  auto& graphs = entry->graphs;
  for (auto kept = graphs.begin(); kept != graphs.end(); ++kept) {
    const bool free = kept->graph.use_count() == 1;
    if (!free || !(kept->structure == structure) || !is_of(*kept->graph, program, ranks)) continue;
    renumber(*kept->graph, problem, options);
    std::rotate(kept, kept + 1, graphs.end());  // the latest last
    return graphs.back().graph;
  }
  auto graph = build();
  graphs.push_back({structure, graph});
  make_room();
  return graph;
}

std::vector<Bytes> Reuse::peaks(const TaskGraph& graph) {
  for (Entry& entry : entries_) {
    for (KeptGraph& kept : entry.graphs) {
      if (kept.graph.get() == &graph) return kept.peaks.of(graph, graph.classes());
    }
  }
  return peaks_in_order(graph, graph.classes());
}

}  // namespace pipesim
