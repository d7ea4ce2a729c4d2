// Timing noise as an input: the same seed gives the same durations on any machine.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cstdint>
#include <vector>

#include "sim/graph/task_graph.h"

namespace pipesim {

// The factors on compute passes, in the order of their tasks: exp(sigma x - sigma^2 / 2), x
// standard normal: log-normal with mean 1. Messages keep their size.
class Jitter {
 public:
  Jitter(double sigma, std::uint64_t seed) : sigma_(sigma), generator_(seed) {}
  // Writes the next `count` of them, `apart` from each other.
  void draw(size_t count, double* to, size_t apart);

 private:
  double sigma_;
  // Boost's distributions, unlike the standard library's, give the same numbers everywhere.
  boost::random::mt19937_64 generator_;
  boost::random::normal_distribution<double> normal_;
};

// Seconds of every task.
std::vector<double> jittered(const TaskGraph& graph, double sigma, std::uint64_t seed);

}  // namespace pipesim
