#include "sim/planning/memory_ladder.h"

#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim {

Bytes memory_of_1f1b(const Problem& problem) {
  return problem.shape.devices * problem.device_activation();
}

Bytes limit_or_1f1b(const Problem& problem) {
  const Bytes least = for_planning(problem).device_activation();
  return problem.activation_limit.value_or(std::max(memory_of_1f1b(problem), least));
}

Bytes largest_chunk(const Problem& problem) {
  return std::ranges::max_element(problem.stages, {}, &StageCost::activation)->activation;
}

std::vector<Bytes> rungs_below(const Problem& problem, Bytes limit, int parts) {
  constexpr double kNear = 1 + 1e-9;  // a limit that is a rung is not below itself
  const Bytes one = problem.device_activation();
  std::vector<Bytes> rungs;
  for (int i = 3 * parts; i > 0; --i) {
    const double microbatches = static_cast<double>(i) * problem.shape.devices / parts;
    const Bytes rung = microbatches * one;
    if (microbatches >= 1 && kNear * rung < limit) rungs.push_back(rung);
  }
  return rungs;
}

}  // namespace pipesim
