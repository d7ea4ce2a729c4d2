// What `balance: auto` stands for: the split of layers over the stages of a choice with the least
// maximal stage time, of those that fit a GPU's memory.
//
// A stage takes its layers' seconds of F, B and W, and of R where every chunk recomputes
// (layer_weights); the embedding, MTP modules and the output are layers of their own seconds. What
// a device keeps follows from the schedule's program: how many microbatches' activations, stashes
// and checkpoints it holds at once on each chunk, whatever their size. Where the program's order
// does not depend on the split, the split is the best of all that fit (models/balance.h). A
// schedule that orders by seconds or bytes, or copies to the host, is planned again with what is
// found, at most two dozen times, and a better split may be missed; what is returned was planned
// and fits.
#pragma once

#include <optional>

#include "models/layout.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Whether the scenario has a model whose layers are to be balanced.
bool asks_for_balance(const Scenario& scenario);

// Nothing when no split that this finds fits. Requires asks_for_balance.
std::optional<Layout> balanced_layout(const Scenario& scenario, const ScheduleChoice& choice);

// Sets ScheduleChoice::balanced of every choice for which a split fits, where the scenario asks for
// it; of the others make_problem says that they have none.
void settle_balance(Scenario& scenario);

// InfeasibleError, with the nearest change that fits, for a choice without a split where the
// scenario asks for one.
void refuse_unbalanced(const Scenario& scenario, const ScheduleChoice& choice);

}  // namespace pipesim
