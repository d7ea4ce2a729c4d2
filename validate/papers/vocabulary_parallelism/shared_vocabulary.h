// Vocabulary Parallelism's own three methods: vocab-1, vocab-2 and interlaced.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/pipeline/vocabulary.h"
#include "sim/scenario/yaml.h"
#include "validate/papers/validation.h"

namespace pipesim {

// By the names of the tables (Vocab-1, ...) or of the artifact (vocab is vocab-2, synctwice
// vocab-1). Nothing for the baselines, whose vocabulary stands on the ends.
std::optional<VocabularyPlacement> sharded_method(std::string_view name);

// A row of exp_one_host_csv of one of these methods: the iteration time from the measured times of
// every device, with the modelled messages, collectives and optimizer step of the catalogue's
// a100-roce. InputError when the row is not as expected.
Cell compare_measured_shares(const YamlValue& row, const Location& asked);

}  // namespace pipesim
