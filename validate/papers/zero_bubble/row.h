// A measured run of the Zero Bubble paper (Tables 4, 6, 7, 10, 11, 12), as a table's row states it.
#pragma once

#include <string>
#include <vector>

#include "models/layer_context.h"
#include "models/layout.h"
#include "models/memory.h"
#include "models/transformer.h"
#include "sim/read/yaml.h"

namespace pipesim::zero_bubble {

// A row of Table 3.
struct ModelRow {
  std::string model;
  int micro_batch = 0;
  std::vector<int> microbatches;  // that its runs take; empty when not stated
};

// The models of the file's Table 3; the project's own where the file has none.
std::vector<ModelRow> read_models(YamlMap& root);

// InputError when the model, as "1.5B", is not in the catalogue.
void check_model(const std::string& name, const Location& where);

struct Row {
  std::string model;     // "1.5B"
  std::string schedule;  // as the paper calls it
  int devices = 0;
  int microbatches = 0;
  int micro_batch = 0;
  Location where;  // of the model's name

  // "1.5B p=8 m=24 b=6 ZB-2p"
  [[nodiscard]] std::string text() const;
};

// The keys that say what was run. `p` or `gpus`; `b` here or in Table 3; without a schedule's name
// `schedule` is empty. InputError when the row cannot be understood, or its model or schedule is
// not known.
Row read_row(const YamlValue& value, YamlMap& map, const std::vector<ModelRow>& models);

// Corrects a misprint, and returns the printed value; empty where nothing is corrected. Table 11
// prints 32 microbatches in the middle rows of models that run more. Table 3 and the throughputs,
// which lie between those of the rows around, mean Table 3's middle number.
std::string correct_misprint(Row& row, const std::vector<ModelRow>& models);

// The run of a row: ZB-2p* is ZB-2p with the same samples in twice the microbatches.
struct Run {
  Transformer model;
  LayerContext context;
  ParameterState state;
  EvenSplit split;
  std::string schedule;  // here
  int chunks = 1;
  int microbatches = 0;
};

// The settings of the authors' runs: fp16, so that gradients are 16 bits; attention that makes its
// scores, as their memory per layer (34h + 5as) has it; first and last stage with a layer less.
Run run_of(const Row& row);

}  // namespace pipesim::zero_bubble
