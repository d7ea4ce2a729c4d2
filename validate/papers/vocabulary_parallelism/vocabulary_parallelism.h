// Balancing Pipeline Parallelism with Vocabulary Parallelism: peak memory per GPU and throughput
// (Tables 5 and 6), iteration times from measured stages (the artifact's runs on one host), and how
// vocabulary layers divide (Table 3).
#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/core/error.h"
#include "sim/read/yaml.h"
#include "validate/papers/cell.h"
#include "validate/papers/vocabulary_parallelism/host_runs.h"
#include "validate/papers/vocabulary_parallelism/rows.h"

namespace pipesim {

// Reads vocabulary_parallelism.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked);

// Adds Table 3: seconds of a vocabulary layer over p times those of a p-th of it.
void compare_scaling(std::vector<Cell>& cells, const YamlValue& table, const Location& asked);

namespace vocabulary_parallelism {

// Adds MFU of Tables 5 and 6 by the one-cell protocol, with the host's measured passes, and the
// gain of Vocab-1 over the baseline.
void compare_throughput(std::vector<Cell>& cells, const std::vector<MethodRow>& rows,
                        const std::vector<HostRun>& runs, const Hardware& hardware);

// Adds, for a row of Table 6 with Vocab-1, how far apart V-Half's devices are with either
// algorithm: at most 3% is the paper's claim.
void compare_balance(std::vector<Cell>& cells, const MethodRow& row);

// Iteration times from the measured seconds of every stage (baselines), or of every device's passes
// (divided vocabularies), with modelled messages, collectives and optimizer step.
Seconds seconds_from_stages(const HostRun& run, const Hardware& hardware);
Seconds seconds_from_shares(const HostRun& run, const Hardware& hardware);

}  // namespace vocabulary_parallelism
}  // namespace pipesim
