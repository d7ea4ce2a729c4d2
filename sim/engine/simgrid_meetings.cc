#include "sim/engine/simgrid_meetings.h"

#include <algorithm>
#include <vector>

namespace pipesim {
namespace {

struct Interval {
  double begin;
  double end;
};

// When a task occupies what it goes over; nothing where it ends before it begins.
Interval occupied(const JobClass& of, double start, double end) {
  return {of.kind == JobKind::kTransfer ? start + of.latency : start, end};
}

bool overlap(std::vector<Interval>& intervals) {
  const auto by_begin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::ranges::is_sorted(intervals, by_begin)) std::ranges::sort(intervals, by_begin);
  double busy_until = 0;
  for (const Interval& each : intervals) {
    // Half of what the engine takes for one instant: what it calls apart is apart here too.
    if (busy_until > each.begin * (1 + kInstant / 2)) return true;
    busy_until = std::max(busy_until, each.end);
  }
  return false;
}

// Calls `visit(resource)` for each thing that tasks of the class share: links, then hosts.
template <class Visit>
void for_each_resource(const JobWays& ways, const JobClass& of, Visit visit) {
  if (of.kind == JobKind::kExecution) visit(ways.links + static_cast<std::uint64_t>(of.host));
  if (of.kind != JobKind::kTransfer) return;
  const JobRoute& way = ways.routes[static_cast<std::size_t>(of.route)];
  for (const std::uint32_t link : ways.route_links.subspan(way.first_link, way.links)) visit(link);
}

}  // namespace

bool anything_meets(const JobWays& ways, const Timeline& timeline) {
  // The tasks of each resource, one after the other, in the order in which they are numbered.
  std::vector<std::size_t> first(ways.links + ways.hosts + 1);
  for (const std::uint32_t of : ways.class_of) {
    for_each_resource(ways, ways.classes[of], [&](std::uint64_t at) { ++first[at + 1]; });
  }
  for (std::size_t at = 1; at < first.size(); ++at) first[at] += first[at - 1];
  std::vector<std::uint32_t> tasks(first.back());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t task = 0; task < ways.class_of.size(); ++task) {
    for_each_resource(ways, ways.classes[ways.class_of[task]],
                      [&](std::uint64_t at) { tasks[next[at]++] = task; });
  }
  std::vector<Interval> intervals;
  for (std::size_t at = 0; at + 1 < first.size(); ++at) {
    intervals.clear();
    for (std::size_t i = first[at]; i < first[at + 1]; ++i) {
      const std::uint32_t task = tasks[i];
      const JobClass& of = ways.classes[ways.class_of[task]];
      const Interval each = occupied(of, timeline.start[task], timeline.end[task]);
      if (each.begin < each.end) intervals.push_back(each);
    }
    if (overlap(intervals)) return true;
  }
  return false;
}

}  // namespace pipesim
