#include "sim/layouts/simplest.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "sim/layouts/ranking.h"

namespace pipesim {
namespace {

// Points that differ from a row in chunks and splits alone, by chunks. With the row's own number
// these are plainer splits.
std::map<int, std::vector<size_t>> points_by_chunks(const Planned& row,
                                                    const std::vector<PlanPoint>& points) {
  std::map<int, std::vector<size_t>> found{{row.point.chunks, {}}};
  const auto add = [&](size_t id) {
    const bool near = same_sizes(points[id], row.point);
    const bool other = points[id].chunks != row.point.chunks || points[id].split < row.point.split;
    if (near && other && same_but_chunks(points[id], row.point)) {
      found[points[id].chunks].push_back(id);
    }
    return near;
  };
  for (size_t id = row.id; id > 0 && add(id - 1);) --id;
  for (size_t id = row.id + 1; id < points.size() && add(id);) ++id;
  for (auto& [chunks, ids] : found) std::ranges::sort(ids);
  return found;
}

}  // namespace

void simplify(Planned& row, const std::vector<PlanPoint>& points, const FindAlike& find_alike) {
  const Planned fastest = row;
  int most_alike = row.point.chunks;
  if (row.point.pipeline > 1) {
    const auto others = points_by_chunks(row, points);
    const auto own = others.find(row.point.chunks);
    const auto take = [&](const std::vector<size_t>& ids) {
      std::optional<Planned> simpler = find_alike(fastest, ids);
      if (simpler) row = std::move(*simpler);
      return simpler.has_value();
    };
    (void)take(own->second);
    for (auto each = own; each != others.begin() && take(std::prev(each)->second);) --each;
    for (auto each = std::next(own); each != others.end() && find_alike(fastest, each->second);) {
      most_alike = (each++)->first;
    }
  }
  row.most_chunks_alike = most_alike;
  row.ideas = fastest.ideas;
}

void merge_rows(std::vector<Planned>& rows) {
  std::vector<Planned> merged;
  for (Planned& row : rows) {
    const auto same = std::ranges::find(merged, row.id, &Planned::id);
    if (same == merged.end()) {
      merged.push_back(std::move(row));
    } else {
      std::ranges::copy(row.ideas, std::back_inserter(same->ideas));
    }
  }
  rows = std::move(merged);
}

}  // namespace pipesim
