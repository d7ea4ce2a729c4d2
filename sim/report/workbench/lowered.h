// A program and its costs as flat data for the page's evaluator
// (sim/report/html/page/workbench/evaluate.js), which knows nothing of schedules or scenarios.
//
// Gates and copies name passes by their text, so that they stay with a pass that is moved.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sim/graph/build_options.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Beside a program's problem: what build_task_graph asks for messages and slow devices, and the
// rank of each device.
struct OnRanks {
  BuildOptions options = {};
  std::vector<int> ranks = {};
};

// The input to evaluate any order of the program's passes: {devices, directions, splits, device_of,
// stages, blocks, kinds, kind_of_unit, sizes, slowdown, wraps, joins, together, vocabulary}.
nlohmann::ordered_json evaluated_with(const Program& program, const Problem& problem,
                                      const OnRanks& on = {});

// The copies of the program: {ratio, ordered, links, gates}, or null. `ordered`: peaks follow from
// the order of passes (peaks_by_order), not from times.
nlohmann::ordered_json copies_json(const Program& program, const Problem& problem, bool ordered);

// The passes of each device in the letters of Program::text, a text per device.
nlohmann::ordered_json order_json(const Program& program);

}  // namespace pipesim
