#include "sim/search/found.h"

#include "sim/execution/evaluate.h"
#include "sim/planning/room.h"

namespace pipesim {

void evaluate_found(Found& found) {
  const Evaluation result = evaluate(*found.program, found.problem);
  found.cost = result.cost;
  found.makespan = result.makespan;
  found.time = time_of(result, found.problem.objective);
  found.bubble_rate = result.bubble_rate();
  found.bubble_rate_busiest = result.bubble_rate_busiest();
  found.peak = result.peak_activation();
}

bool better(const Found& a, const Found& b) {
  const auto copies = [](const Found& found) { return found.program->copies() != nullptr; };
  if (a.time != b.time) return a.time < b.time;
  if (keeps_all(a) != keeps_all(b)) return keeps_all(a);
  if (copies(a) != copies(b)) return copies(b);
  return a.peak < b.peak;
}

bool keeps_all(const Found& found) {
  return found.program->copies() == nullptr && recompute_chunks_of(found.choice) == 0;
}

bool fits(const Found& found, Bytes limit) { return found.peak <= kRounding * limit; }

bool is_shorter(Seconds time, const Found& than) { return kRounding * time < than.time; }

}  // namespace pipesim
