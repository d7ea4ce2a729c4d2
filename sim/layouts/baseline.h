// A layout to hold the others against: the usual one, or one that a person brings.
#pragma once

#include <optional>
#include <string>

#include "sim/core/error.h"
#include "sim/layouts/outcome.h"

namespace pipesim {

// What a person would try first with Megatron-LM (Narayanan et al. 2021, section 3, takeaways 1 to
// 3): microbatches of one sample, even layers, and the fewest ranks that fit, of these the most
// tensor ranks, no more than a node has; a pipeline interleaved as often as layers divide; context
// ranks only where no other division fits, recomputation in full only where nothing fits without.
// Experts stand on as many ranks of a node as divide them, on several nodes only where nothing else
// fits. Layouts that idle for more than a quarter of the time are passed over. Switches are those
// of the question. Nothing where none of these fits.
std::optional<Planned> usual_layout(const PlanQuestion& question);

// The scenario's layout as a row beside the question's. Throws InputError at `where` for one of
// another model, cluster, number of GPUs, batch or sequence length, of several schedules, or of a
// schedule without a name.
Planned baseline_of(const PlanQuestion& question, Scenario scenario, const Location& where);

}  // namespace pipesim
