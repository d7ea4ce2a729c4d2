// Reads the question of a plan: scenario keys, all but the sizes, the schedule and the batch, which
// the plan finds.
#pragma once

#include <string_view>
#include <vector>

#include "sim/layouts/report.h"
#include "sim/read/yaml.h"

namespace pipesim {

// True for a scenario key that a plan starts from, as listed below.
bool starts_plan(std::string_view path);

// `settings` are scenario keys of the sections model, cluster, cost, memory, framework and
// optimizer. Others are batch.seq_length, and of `parallel` sequence_parallel, cp_comm_type and
// hierarchical_context_parallel_sizes. The rest is an InputError at its place. Defaults are a
// scenario's, except that sequence parallelism and the distributed optimizer are on.
// memory.capacity is the limit; by default the GPU's memory is.
//
// Requires a model, a cluster and a seq_length among them. Throws InputError wherever a
// reader of scenarios would, and for costs that do not follow from the model.
ClusterPlan read_plan_question(const std::vector<Override>& settings);

}  // namespace pipesim
