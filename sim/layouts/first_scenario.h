// A first scenario of one's own: the layout that a plan found, with a line about every section.
#pragma once

#include <string>

#include "models/hardware.h"
#include "models/transformer.h"
#include "sim/layouts/report.h"

namespace pipesim {

// Nodes doubled, from one on, until the memory of their GPUs is
// twice as large as weights, gradients and Adam's states.
int fewest_gpus(const Transformer& model, const Hardware& hardware);

// Tokens of a sample for a first scenario: 4096, or all that learned positions reach.
int first_seq_length(const Transformer& model);

// The scenario of a layout of the plan, as plan_scenario writes it, each section commented.
std::string first_scenario(const ClusterPlan& plan, const Planned& planned);

}  // namespace pipesim
