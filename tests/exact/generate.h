// Small random instances, the same for the same seed.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/exact/instance.h"

namespace pipesim::exact {

// `linear` with one chunk per device on 2 to 4 devices, then `vee` with two on 2 or 3.
std::vector<Instance> generate(std::uint64_t seed, int linear, int vee);

// `count` pipelines of unlike devices, each on three placements: linear with one chunk per device,
// looped and vee with two that share a device's costs evenly. Their makespan is what is sought.
std::vector<Instance> generate_alike(std::uint64_t seed, int count);

}  // namespace pipesim::exact
