// The keys of a scenario that speak of its model: where layers stand, over which ranks they are
// divided, and what is kept (docs/reference/scenario.md).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/read/yaml.h"
#include "sim/scenario/modelled.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Sizes in `parallel` beside those of the pipeline.
struct ModelParallel {
  int context = 1;
  ContextExchange exchange = ContextExchange::kAllGather;
  std::vector<ContextExchange> exchanges = {};  // of each layer, where it is a list
  std::optional<Location> exchange_where = {};
  std::array<int, 2> hierarchy{1, 1};
  bool repeats_keys = false;
  int expert = 1;
  std::optional<int> expert_tensor = {};
  bool sequence_parallel = false;
  LayerSplit split = {};
  std::optional<Location> asked = {};  // the first key that needs a model
};
ModelParallel read_model_parallel(YamlMap& parallel);

// True if the scenario's memory follows from a model: `kind: model`, or a model and no `memory`.
// InputError for a model that nothing uses, or for keys that need one.
bool memory_is_modelled(YamlMap& root, const ModelParallel& asked);

// Values of memory.precision.
const std::vector<std::string>& precision_names();

// Copies the scenario's sizes, batch and vocabulary to the model's context and state. Requires a
// micro_batch_size.
void take_sizes(const Scenario& scenario, Modelled& modelled);

// Reads `model` and `memory`. Requires memory_is_modelled, and schedules, sizes and batch to be
// read; checks every choice's layout.
Modelled read_modelled(YamlMap& root, const YamlValue& parallel, const YamlValue& batch,
                       const ModelParallel& asked, const Scenario& scenario);

// Why neither DeepEP nor HybridEP runs on a cluster; empty where one does.
std::string why_no_flex(const Hardware& hardware);
// Why DeepEP does not run on a cluster; empty where it does.
std::string why_no_deepep(const Hardware& hardware);

// `cost: {kind: roofline}` or `{kind: measured}`, or no cost beside a model and a cluster by name;
// nothing when costs are given. Measured curves go into the scenario's hardware. Requires model and
// cluster to be read.
std::optional<RooflineCost> read_roofline(YamlMap& root, Scenario& scenario);

}  // namespace pipesim
