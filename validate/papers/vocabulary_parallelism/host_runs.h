// The artifact's runs on one host (exp_one_host_csv): measured seconds of a microbatch on every
// device, and of the iteration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/pipeline/vocabulary.h"
#include "sim/read/yaml.h"

namespace pipesim::vocabulary_parallelism {

struct HostRun {
  std::string method;  // base, redis, vocab, ...
  VocabularyPlacement placement = VocabularyPlacement::kFirstLast;
  std::string fault;  // why it is not modelled; empty: it is
  Transformer model;
  int devices = 1;
  int microbatches = 1;
  int micro_batch = 1;
  int seq = 1;
  int last_layers = 1;  // decoder layers of the last stage
  Seconds iteration;
  std::vector<Seconds> forward, backward;  // of the last stage with its output layer
  // With a divided vocabulary: S and T together, IF, IB.
  std::vector<Seconds> output, input_forward, input_backward;

  // Microbatches and sizes, as cells name a run.
  [[nodiscard]] std::string text() const;
};

// A run with a fault has no model and no seconds but the iteration's. InputError where a row is not
// as expected.
std::vector<HostRun> read_host_runs(const YamlValue& rows);

// The names of the tables (Baseline, Vocab-1, ...) or of the artifact (base; vocab is vocab-2,
// synctwice vocab-1).
enum class Naming { kPaper, kArtifact };
std::vector<std::string> method_names(Naming naming);
// The placement that one of those names means.
VocabularyPlacement placement_of_method(std::string_view name);

}  // namespace pipesim::vocabulary_parallelism
