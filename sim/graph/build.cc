#include "sim/graph/build.h"

#include <numeric>
#include <utility>

#include "sim/graph/task_stream.h"

namespace pipesim {

TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const std::vector<std::vector<int>>& ranks,
                           const BuildOptions& options) {
  TaskGraph::Parts parts;
  GraphRows rows(parts);
  TaskStream(parts, rows, program, problem, ranks, options).run();
  return TaskGraph(std::move(parts));
}

TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const BuildOptions& options) {
  std::vector<int> ranks(program->shape().devices);
  std::iota(ranks.begin(), ranks.end(), 0);
  return build_task_graph(program, problem, {ranks}, options);
}

}  // namespace pipesim
