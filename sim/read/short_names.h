// Names of keys as people type them: "pp" for parallel.pipeline_model_parallel_size. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

namespace pipesim {

// A key of the section (a path; empty: the root) with '_' for '-', a short name written out.
std::string key_in(std::string_view section, std::string key);

// A path of keys likewise; a short name alone ("pp") has its section put before it.
std::string in_full(std::string path);

// True where the key alone says its section: "pp", "schedule".
bool stands_alone(std::string_view key);

}  // namespace pipesim
