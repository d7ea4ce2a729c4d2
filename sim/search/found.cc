#include "sim/search/found.h"

#include <utility>

#include "sim/execution/evaluate.h"
#include "sim/planning/room.h"

namespace pipesim {

Found measure(const Contender& contender, const Problem& problem,
              std::shared_ptr<const Program> program) {
  Found found{contender};
  found.problem = problem;
  found.program = std::move(program);
  const Evaluation result = evaluate(*found.program, problem);
  found.cost = result.cost;
  found.makespan = result.makespan;
  found.time = time_of(result, problem.objective);
  found.bubble_rate = result.bubble_rate();
  found.bubble_rate_busiest = result.bubble_rate_busiest();
  found.peak = result.peak_activation();
  return found;
}

bool better(const Found& a, const Found& b) {
  if (a.time != b.time) return a.time < b.time;
  if (keeps_all(a) != keeps_all(b)) return keeps_all(a);
  if (stays(a) != stays(b)) return stays(a);
  return a.peak < b.peak;
}

bool stays(const Found& found) { return found.program->copies() == nullptr; }

bool keeps_all(const Found& found) { return stays(found) && !found.program->recomputes(); }

bool same_order(const Found& a, const Found& b) {
  return a.layout == b.layout && a.program->same_order(*b.program);
}

bool fits(const Found& found, Bytes limit) { return is_within(found.peak, limit); }

bool is_shorter(Seconds time, const Found& than) { return kRounding * time < than.time; }

}  // namespace pipesim
