// The samples of a batch and their model FLOPs, also where microbatches differ.
#pragma once

#include "models/layer_context.h"
#include "sim/core/units.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Samples of one pipeline; of documents that differ, seq_length tokens of them for one.
double samples_of(const Scenario& scenario);

// Where documents differ a sample stands for seq_length tokens of them, where images differ it has
// as many as all have on average. Requires a model.
Flops flops_of_sample(const Scenario& scenario, const LayerContext& context, bool causal);

}  // namespace pipesim
