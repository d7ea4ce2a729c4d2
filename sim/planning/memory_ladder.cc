#include "sim/planning/memory_ladder.h"

namespace pipesim {

std::vector<Bytes> rungs_below(const Problem& problem, Bytes limit, int parts) {
  constexpr double kRounding = 1 + 1e-9;  // a limit that is a rung is not below itself
  const Bytes one = problem.device_activation();
  std::vector<Bytes> rungs;
  for (int i = 3 * parts; i > 0; --i) {
    const double microbatches = static_cast<double>(i) * problem.shape.devices / parts;
    const Bytes rung = microbatches * one;
    if (microbatches >= 1 && kRounding * rung < limit) rungs.push_back(rung);
  }
  return rungs;
}

}  // namespace pipesim
