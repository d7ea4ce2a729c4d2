// The key `schedule` of a scenario, and limits on memory as schedules take them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

inline constexpr const char* kChunksKey = "virtual_pipeline_model_parallel_size";

// A name, a map, or a list of both. CSV files and descriptions are looked for beside
// `scenario_file`, then in the current folder.
std::vector<ScheduleChoice> read_schedules(const YamlValue& value,
                                           const std::string& scenario_file);

// A limit as `memory_limit` of a schedule states it: a multiple, or bytes.
std::variant<double, Bytes> parse_memory_limit(const std::string& text, const Location& where);

}  // namespace pipesim
