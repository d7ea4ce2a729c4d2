// Pipeline Parallelism with Controllable Memory: its building blocks (Table 1), the offsets of
// those of V-Min and V-Half (Tables 8 and 9), throughput and activation memory of eight schedules
// (Figure 7), and its grid search over data, tensor and pipeline ranks (Tables 6 and 7).
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/read/yaml.h"
#include "validate/papers/cell.h"

namespace pipesim {

// Reads controllable_memory.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare_controllable_memory(const std::string& folder, const Location& asked);

namespace controllable_memory {

// Adds Table 1.
void compare_blocks(std::vector<Cell>& cells, const YamlValue& rows);
// Adds the slides' table of bubble and peak memory by schedule.
void compare_slides(std::vector<Cell>& cells, const YamlValue& rows);
// Adds Table 8 (of v-min) or 9 (of v-half).
void compare_offsets(std::vector<Cell>& cells, const YamlValue& rows, const std::string& table,
                     const std::string& schedule);
// Adds the panels of Figure 7.
void compare_runs(std::vector<Cell>& cells, const YamlValue& panels, const Location& asked);
// Adds Tables 6 and 7: the rows that say their model and micro batch, which the paper's captions do
// and the known cells do not; the others as not modelled.
void compare_grid(std::vector<Cell>& cells, const YamlValue& table, const Location& asked);

}  // namespace controllable_memory
}  // namespace pipesim
