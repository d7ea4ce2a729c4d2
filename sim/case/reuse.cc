#include "sim/case/reuse.h"

#include <algorithm>
#include <utility>

#include "sim/graph/build.h"

namespace pipesim {
namespace {

bool stands_on(const TaskGraph& graph, const std::vector<std::vector<int>>& ranks) {
  return std::ranges::equal(graph.pipelines(), ranks, {}, &PipelineInstance::rank_of_device);
}

}  // namespace

size_t Reuse::Entry::bytes() const {
  size_t bytes = program->size() * sizeof(Pass);
  for (const KeptGraph& kept : graphs) bytes += kept.graph->resident_bytes();
  return bytes;
}

size_t Reuse::Orders::bytes() const {
  size_t bytes = 0;
  for (const Program& order : *orders) bytes += order.size() * sizeof(Pass);
  return bytes;
}

size_t Reuse::bytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes();
  for (const Orders& orders : orders_) bytes += orders.bytes();
  return bytes;
}

Reuse::Key Reuse::key_of(const Schedule& schedule, const Problem& problem) {
  return {&schedule, problem.shape, problem.recompute_chunks, problem.vocabulary, problem.options};
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

std::shared_ptr<const Program> Reuse::program(
    const Schedule& schedule, const Problem& problem,
    const std::function<std::shared_ptr<const Program>()>& make) {
  Key key = key_of(schedule, problem);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.push_front({std::move(key), make(), {}});
    make_room();
  }
  return entries_.front().program;
}

// The latest stay whatever their size.
std::shared_ptr<const std::vector<Program>> Reuse::orders(const Schedule& schedule,
                                                          const Problem& problem) {
  Key key = key_of(schedule, problem);
  const auto found = std::ranges::find(orders_, key, &Orders::key);
  if (found != orders_.end()) {
    orders_.splice(orders_.begin(), orders_, found);
    return orders_.front().orders;
  }
  orders_.push_front(
      {std::move(key), std::make_shared<const std::vector<Program>>(orders_of(schedule, problem))});
  size_t all = 0;
  for (const Orders& orders : orders_) all += orders.bytes();
  for (; all > most_bytes_ / 4 && orders_.size() > 1; orders_.pop_back()) {
    all -= orders_.back().bytes();
  }
  return orders_.front().orders;
}

bool Reuse::keeps(const std::shared_ptr<const Program>& program) const {
  return std::ranges::find(entries_, program, &Entry::program) != entries_.end();
}

std::shared_ptr<const TaskGraph> Reuse::graph(const std::shared_ptr<const Program>& program,
                                              const Problem& problem,
                                              const std::vector<std::vector<int>>& ranks,
                                              const BuildOptions& options) {
  const auto build = [&] {
    return std::make_shared<TaskGraph>(build_task_graph(program, problem, ranks, options));
  };
  const auto entry = std::ranges::find(entries_, program, &Entry::program);
  if (entry == entries_.end()) return build();
  const GraphStructure structure = structure_of(options);
  entries_.splice(entries_.begin(), entries_, entry);
  auto& graphs = entry->graphs;
  for (auto kept = graphs.begin(); kept != graphs.end(); ++kept) {
    const bool free = kept->graph.use_count() == 1;
    if (!free || !(kept->structure == structure) || !stands_on(*kept->graph, ranks)) continue;
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
