#include "sim/engine/jitter.h"

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

namespace pipesim {

std::vector<double> jittered(const TaskGraph& graph, double sigma, std::uint64_t seed) {
  // Boost's distributions, unlike the standard library's, give the same numbers everywhere.
  boost::random::mt19937_64 generator(seed);
  boost::random::normal_distribution<double> normal;
  std::vector<double> seconds(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    double factor = 1;
    if (of.kind == TaskKind::kCompute)
      factor = std::exp(sigma * normal(generator) - sigma * sigma / 2);
    seconds[task] = of.seconds.value() * factor;
  }
  return seconds;
}

}  // namespace pipesim
