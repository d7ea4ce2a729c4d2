// The contention-free engine without a timeline: sums of each device, under one cost or many.
//
// Costs are taken eight at a time. The lanes of a task are adjacent in memory: the graph is read
// once for eight of them. A vector holds two, or four where the processor has AVX2. Every lane is,
// to the last bit, the timeline of the engine `replay` for its costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/device_sums.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

// The widest that the processor has, or those that every processor has.
enum class LaneVectors : std::uint8_t { kBest, kEverywhere };

// Seconds of a graph's classes, for replay_lanes.
std::vector<double> seconds_of(std::span<const TaskClass> classes);

// Replays every cost in `seconds`, each with the seconds of every class. LogicError for another
// number of classes, and for a graph of several iterations. O(costs (tasks + edges)); 64 bytes for
// each task.
std::vector<RunTimes> replay_lanes(const TaskGraph& graph,
                                   std::span<const std::vector<double>> seconds,
                                   LaneVectors vectors = LaneVectors::kBest);

// Replays every run with the seconds that `jittered` gives for its seed: `first_seed` and those
// after it. LogicError for a graph of several iterations. O(runs (tasks + edges)); 64 bytes for
// each task, or 8 where that would be more than a GiB.
std::vector<RunTimes> replay_jittered(const TaskGraph& graph, double sigma,
                                      std::uint64_t first_seed, size_t runs,
                                      LaneVectors vectors = LaneVectors::kBest);

}  // namespace pipesim
