// Anchor files, which `pipesim anchor` writes (docs/reference/scenario.md, "cost.anchor").
//
//     factors: {compute: 1.182, reduction: 1}   # CostFactors of models/layer_cost.h
//     fixed_seconds: 0.21
//     from:                                     # the runs that it was made of, at least one
//       - {scenario: run.yaml, model: gpt3-175b, gpu: h100-sxm, precision: bf16, gpus: 256,
//          num_microbatches: 64, data_parallel_size: 4, measured_seconds: 19.78,
//          simulated_seconds: 16.9, anchored_seconds: 19.78}
//     unidentified: ["reduction: ..."]          # what the runs could not tell apart, and why
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// How a scenario's precision is called in files.
std::string precision_name(const Modelled& modelled);

// InputError for what is no anchor file, and for one whose runs had another GPU than the scenario.
// Requires the scenario's model and hardware. The file stands relative to the scenario's folder or,
// when it is not there, to the current one.
Anchor read_anchor(const YamlSource& source, const Scenario& scenario);
Anchor read_anchor_file(const YamlValue& file, const Scenario& scenario);

}  // namespace pipesim
