// Zero Bubble Pipeline Parallelism: bubble rates calculated from profiled times (Tables 5 and 8)
// and within memory limits (Figure 9), memory per GPU (Tables 4, 6 and 11), throughput (Tables 4,
// 6, 7, 11 and 12) and what post-validation gains (Table 10).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/read/yaml.h"
#include "validate/papers/cell.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/zero_bubble/profile.h"

namespace pipesim::zero_bubble {

// InputError at a key of the file that is none of the paper's tables.
void finish_tables(YamlMap& root);

// Reads zero_bubble.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare(const std::string& folder, const Location& asked);

// Compares programs of `search` with published ones on the same settings: at the memory of five
// published schedules, and at the limits of Figure 9 with the lower of its curves. Minutes.
std::vector<Cell> compare_search(const std::string& folder, const Location& asked);

// The profiled times of a setting, where the file has them.
using ProfileOf =
    std::function<std::optional<DeviceSeconds>(const std::string& model, int devices, int m)>;

// Adds the cells of the tables of measured memory that the file has.
void compare_memory(std::vector<Cell>& cells, YamlMap& root, const ProfileOf& profile_of);

// Adds the cells of measured throughput that the file has (docs/reference/model.md, "Measured
// throughput").
void compare_throughput(std::vector<Cell>& cells, YamlMap& root,
                        const std::vector<Profile>& profiles, const Location& asked);

}  // namespace pipesim::zero_bubble
