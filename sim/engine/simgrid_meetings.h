// Decides if tasks of a run without contention would disturb each other.
#pragma once

#include <cstdint>
#include <span>

#include "sim/engine/simgrid_module.h"
#include "sim/graph/timeline.h"

namespace pipesim {

// The part of a job that says who occupies what: the classes of its tasks, the routes and the links
// on them.
struct JobWays {
  std::span<const std::uint32_t> class_of;
  std::span<const JobClass> classes;
  std::span<const JobRoute> routes;
  std::span<const std::uint32_t> route_links;
  std::uint64_t links = 0;
  std::uint64_t hosts = 0;
};

// True in three cases. Two messages of the timeline flow over one link for more than an instant. A
// message goes over a link twice. Two tasks compute on one host that is simulated (kExecution).
// Otherwise nothing is ever shared, and the engine would give every task the same times. O(n log n)
// in the tasks of the busiest link; 4 bytes per link of a message.
bool anything_meets(const JobWays& ways, const Timeline& timeline);

}  // namespace pipesim
