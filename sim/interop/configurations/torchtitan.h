// A case as a job file of torchtitan (config/job_config.py at 000204a), which `pipesim import
// --format torchtitan` reads back as the same scenario.
#pragma once

#include <string>

#include "models/device_memory.h"
#include "models/layer_cost.h"
#include "models/transformer.h"
#include "sim/case/case.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// Each returns why torchtitan cannot run it; empty where it can. The model must be one of its
// flavours; its schedules' transfers hold the device or do not; kept state and overlaps must be its
// own. The last checks all of a case.
std::string why_no_flavor(const Transformer& model);
std::string why_not_scheduled(const std::string& schedule, bool blocking);
std::string why_not_set_up(const Modelled& modelled, const Overlap& overlap);
std::string why_not_torchtitan(const Case& made);

// How its data ranks divide parameters: by FSDP wherever there are several data or context ranks,
// gathered and reduced once an iteration in a pipeline.
void shard_as_torchtitan(int pipeline, int context, ParameterState& state);
// Its fsdp_reshard_after_forward "default": weights are freed after a forward but in a pipeline.
constexpr bool reshards_by_default(int pipeline) { return pipeline == 1; }

// Sections of TOML. Requires a case that torchtitan runs.
std::string torchtitan_text(const Case& made);

}  // namespace pipesim
