// Balancing Pipeline Parallelism with Vocabulary Parallelism: peak memory per GPU of the baselines
// (Tables 5 and 6), iteration times from measured stages (the artifact's runs on one host), and how
// vocabulary layers divide (Table 3).
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/yaml.h"
#include "validate/papers/validation.h"

namespace pipesim {

// Reads vocabulary_parallelism.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked);

// Adds the artifact's runs on one host: iteration times from the measured times of every stage.
void compare_measured_stages(std::vector<Cell>& cells, const YamlValue& rows,
                             const Location& asked);

// Adds Table 3: seconds of a vocabulary layer over p times those of a p-th of it.
void compare_scaling(std::vector<Cell>& cells, const YamlValue& table, const Location& asked);

}  // namespace pipesim
