// From what a scenario says of unequal microbatches to the microbatches themselves.
#pragma once

#include <cstdint>

#include "sim/scenario/scenario.h"

namespace pipesim {

// Fills `documents`, `images` or `factors` of the scenario's unequal batch from seed `seed`;
// nothing where all microbatches are alike. InputError at the draw where a list does not make the
// scenario's microbatches. Also where more images are drawn than a sequence holds, or too many
// documents wait. O(documents x microbatches), of a stream (UnequalBatch::outliers) times the
// batches up to the seed's.
void draw_batch(Scenario& scenario, std::uint64_t seed);

// Divides each microbatch into so many: as many samples, drawn anew where they differ, in the order
// in which they are drawn. `micro_batch_size` is then that of each.
void divide_microbatches(Scenario& scenario, int parts, int micro_batch_size);

}  // namespace pipesim
