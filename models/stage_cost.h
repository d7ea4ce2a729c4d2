// From layers to stages: seconds of a stage's passes per microbatch, of messages between stages,
// and of the step that closes an iteration (docs/reference/model.md, "Seconds"). Pure functions;
// none allocates, except where it says so.
#pragma once

#include <span>

#include "models/layer_cost.h"
#include "models/layout.h"
#include "models/stage_passes.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// A microbatch's activations (or gradients) between two devices, every tensor, context and data
// rank sending at once. It is a send and receive and, where the framework scatters, the tensor
// ranks' gather of the whole. The two need not be neighbours: a looped pipeline sends from the last
// device to the first.
Seconds message_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const StageLayers& sender, int from, int to);
// The part of message_seconds before and after the bytes are on their way.
Seconds message_latency(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const StageLayers& sender, int from, int to);

// Seconds of every virtual stage: F, B, W, FB of the stage with itself, R, and the message to its
// downstream stage. Bytes are left as they are. `out` has place.virtual_stages() elements, and the
// layout as many stages as the model has on it. O(stages).
void fill_stage_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const Layout& layout, const Placement& place,
                        const LayerCosts& costs, std::span<StageCost> out);

}  // namespace pipesim
