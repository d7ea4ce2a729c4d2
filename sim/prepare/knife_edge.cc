#include "sim/prepare/knife_edge.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "sim/case/host_links.h"
#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

constexpr double kSlower = 0.9;     // of the link's bandwidth
constexpr double kMuchMore = 1.25;  // of the peak

void slow_down(std::vector<StageCost>& stages) {
  for (StageCost& stage : stages) {
    stage.copy_out = stage.copy_out / kSlower;
    stage.copy_in = stage.copy_in / kSlower;
  }
}

Bytes peak_of(const Case& made, const Program& program) {
  const std::vector<Bytes> ordered = ordered_peaks(made, program);
  if (!ordered.empty()) return std::ranges::max(ordered);
  return evaluate(program, made.problem).peak_activation();
}

}  // namespace

std::string knife_edge_of(const Case& made) {
  const ScheduleChoice& choice = made.choice;
  if (made.problem.offload_chunks == 0 && !copies_by_itself(choice)) return "";
  const auto program = make_program(made);
  if (std::ranges::max(program->copied_units()) == 0) return "";
  Case slower = made;
  slow_down(slower.problem.stages);
  for (UnitKind& kind : slower.problem.kinds) slow_down(kind.stages);
  const Bytes now = peak_of(made, *program);
  const auto edge = [&now](const std::string& then) {
    return fmt::format("on a knife edge of the host link: activations peak at {}, {}", human(now),
                       then);
  };
  try {
    const Bytes then = peak_of(slower, *make_program(slower));
    if (then <= kMuchMore * now) return "";
    return edge(fmt::format("over a link 10% slower at {}", human(then)));
  } catch (const InfeasibleError&) {
    return edge("and over a link 10% slower the schedule's rules have no plan");
  }
}

}  // namespace pipesim
