#include "sim/graph/renumber.h"

#include <vector>

#include "sim/core/error.h"
#include "sim/graph/class_table.h"

namespace pipesim {

GraphStructure structure_of(const BuildOptions& options) {
  GraphStructure structure{options};
  structure.iterations = options.iterations;
  structure.reduces = options.collective > Seconds(0);
  structure.steps = options.optimizer > Seconds(0) || !options.optimizer_of_device.empty();
  structure.gradients = !options.gradients_of_device.empty();
  structure.copies_contend = options.contending_copies.has_value();
  return structure;
}

void renumber(TaskGraph& graph, const Problem& problem, const BuildOptions& options) {
  graph.set_classes(renumbered(graph, problem, options));
}

std::vector<TaskClass> renumbered(const TaskGraph& graph, const Problem& problem,
                                  const BuildOptions& options) {
  if (graph.origins().size() != graph.classes().size()) {
    throw LogicError("task graph: its classes have no origins");
  }
  std::vector<ClassMaker> makers;
  for (const PipelineInstance& pipeline : graph.pipelines()) {
    makers.emplace_back(*pipeline.program, problem, pipeline.rank_of_device, options,
                        static_cast<std::uint32_t>(makers.size()));
  }
  std::vector<TaskClass> classes;
  classes.reserve(graph.origins().size());
  for (const ClassOrigin& origin : graph.origins()) {
    classes.push_back(makers[origin.pipeline].made(origin));
  }
  return classes;
}

}  // namespace pipesim
