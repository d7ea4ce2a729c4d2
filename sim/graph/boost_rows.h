// The edges of a task graph as a graph of Boost.Graph, for its algorithms. Apart from task_graph.h,
// which most of the house includes: Boost's headers take a second to compile.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>

#include "sim/graph/task_graph.h"

namespace pipesim {

using BoostRows =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, TaskId, std::uint32_t>;

struct TaskGraph::Rows {
  BoostRows graph;
};

inline const BoostRows& boost_rows(const TaskGraph& graph) { return graph.rows().graph; }

}  // namespace pipesim
