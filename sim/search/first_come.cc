#include "sim/search/first_come.h"

#include <utility>

#include "sim/planning/list_schedule.h"

namespace pipesim {

Program first_come(Problem problem, Bytes limit) {
  problem.activation_limit = limit;
  return list_schedule(problem, [](const Turn& turn) {
    return turn.first_ready({PassKind::kB, PassKind::kF, PassKind::kW});
  });
}

}  // namespace pipesim
