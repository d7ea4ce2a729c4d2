// Zero Bubble Pipeline Parallelism: bubble rates calculated from profiled times (Tables 5 and 8)
// and within memory limits (Figure 9), and what post-validation gains (Table 10).
#pragma once

#include <string>
#include <vector>

#include "validate/papers/validation.h"

namespace pipesim {

// Reads `<folder>/zero_bubble.yaml`, or `<folder>/zero_bubble/zero_bubble.yaml` as it stands here.
// Tables of the file that are not compared yet are left alone.
std::vector<Cell> compare_zero_bubble(const std::string& folder, const Location& asked);

// What `search` finds on the same settings: at the memory of five published schedules, against the
// best published one, and at the limits of Figure 9, against the lower of its curves. Minutes.
std::vector<Cell> compare_search(const std::string& folder, const Location& asked);

}  // namespace pipesim
