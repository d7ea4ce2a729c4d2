// The artifact's runs on one host (exp_one_host_csv): measured seconds of a microbatch on every
// device, and of the iteration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/pipeline/vocabulary.h"
#include "sim/scenario/yaml.h"

namespace pipesim::vocabulary_parallelism {

struct HostRun {
  std::string method;                            // base, redis, vocab, ...
  std::optional<VocabularyPlacement> placement;  // nothing for a method that is not known
  Transformer model;
  int devices = 1;
  int microbatches = 1;
  int micro_batch = 1;
  int seq = 1;
  int last_layers = 1;  // decoder layers of the last stage
  Seconds iteration;
  std::vector<Seconds> forward, backward;  // of the last stage with its output layer
  // Of a divided vocabulary: S and T together, IF, IB.
  std::vector<Seconds> output, input_forward, input_backward;

  // Microbatches and sizes, as cells name a run.
  [[nodiscard]] std::string text() const;
};

// A run of a method that is not known has no model and no seconds but the iteration's. InputError
// where a row is not as expected.
std::vector<HostRun> read_host_runs(const YamlValue& rows);

// By the names of the tables (Baseline, Vocab-1, ...) or of the artifact (base; vocab is vocab-2,
// synctwice vocab-1).
std::optional<VocabularyPlacement> placement_of_method(std::string_view name);

}  // namespace pipesim::vocabulary_parallelism
