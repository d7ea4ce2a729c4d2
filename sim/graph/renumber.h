// New numbers for a graph that stands: what-ifs of one program differ in nothing else.
#pragma once

#include <vector>

#include "sim/graph/build_options.h"
#include "sim/graph/task_graph.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// The options that decide which tasks exist and what they wait for. Graphs of one program on the
// same ranks with equal structures differ only in the numbers of their classes.
struct GraphStructure : Coupling {
  int iterations = 1;
  bool reduces = false;
  bool steps = false;
  bool gradients = false;
  bool copies_contend = false;
  friend bool operator==(const GraphStructure&, const GraphStructure&) = default;
};
GraphStructure structure_of(const BuildOptions& options);

// The graph as build_task_graph makes it of its programs and ranks with this problem and these
// options. Their structure must be that of the options it was built with. LogicError for a graph
// that was not built by build_task_graph, or of units that cost unequally. O(classes).
void renumber(TaskGraph& graph, const Problem& problem, const BuildOptions& options);

// The classes that it would have then.
std::vector<TaskClass> renumbered(const TaskGraph& graph, const Problem& problem,
                                  const BuildOptions& options);

}  // namespace pipesim
