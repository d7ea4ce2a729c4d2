// Balancing Pipeline Parallelism with Vocabulary Parallelism: peak memory per GPU of the baselines
// (Tables 5 and 6).
#pragma once

#include <string>
#include <vector>

#include "validate/papers/validation.h"

namespace pipesim {

// Reads vocabulary_parallelism.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked);

}  // namespace pipesim
