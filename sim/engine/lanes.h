// One graph under many costs at a time: the contention-free engine with a lane for every cost.
//
// The lanes of a task stand side by side in memory, so that what the graph says is read once for
// all of them and the compiler's vectors hold several. Every lane is, to the last bit, the timeline
// of the engine `replay` for its costs.
#pragma once

#include <cstddef>
#include <span>

#include "sim/core/large_vector.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

// When every task ends: task 0 of all lanes, task 1 of all lanes, and so on. Where it starts is the
// latest end of what it waits for.
struct LaneTimes {
  size_t lanes = 0;
  LargeVector<double> end;  // seconds
  [[nodiscard]] double end_of(TaskId task, size_t lane) const { return end[task * lanes + lane]; }
};

// Into `times`, whose memory is used again: the first touch of fresh memory takes as long as the
// rest. `seconds`: of class 0 in all lanes, of class 1 in all lanes, and so on. LogicError for
// another number of them. O(lanes (tasks + edges)); 8 bytes for each task and lane. Lanes are taken
// eight at a time: multiples of that are best.
void replay_lanes(const TaskGraph& graph, std::span<const double> seconds, size_t lanes,
                  LaneTimes& times);

}  // namespace pipesim
