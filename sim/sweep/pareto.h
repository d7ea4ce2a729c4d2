// Which of many results no other one beats in both of two numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// Indices of the results that are not dominated, in the order of falling `more`: none other has as
// much of `more` and as little of `less`, and one of them better. Of equal results the first stands
// for all. What is no number is left out. O(n log n).
inline std::vector<std::size_t> pareto_frontier(std::span<const double> more,
                                                std::span<const double> less) {
  if (more.size() != less.size()) throw LogicError("a frontier of unequal lists");
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i] == more[i] && less[i] == less[i]) order.push_back(i);
  }
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (more[a] != more[b]) return more[a] > more[b];
    if (less[a] != less[b]) return less[a] < less[b];
    return a < b;
  });
  std::vector<std::size_t> frontier;
  for (const std::size_t i : order) {
    if (frontier.empty() || less[i] < less[frontier.back()]) frontier.push_back(i);
  }
  return frontier;
}

}  // namespace pipesim
