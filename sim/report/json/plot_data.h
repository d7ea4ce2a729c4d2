// The data of the figures of plots/ that no other document has: every pass and the memory
// over time, with the colours of palette.h.
#pragma once

#include <iosfwd>
#include <span>

#include "sim/prepare/advice.h"

namespace pipesim {

// {"capacity_bytes", "drawings": [{"schedule", "headline", "seconds", "kinds", "passes", "memory",
// "beside_bytes"}]}, of the first pipeline's middle iteration (of an ensemble: of its first run).
// `passes` has a list per device of [start, seconds, kind, microbatch, chunk, part]. The part is 0,
// or 1 and 2 for the halves of an overlapped block. `memory` has a list per device of [seconds,
// bytes]; it is null where no bytes are known. `beside_bytes`, a device's bytes beside activations,
// is null without a model. `kinds` has for every kind of pass its meaning, and by chunk the fill
// and a readable colour on it. The same bytes for the same input.
void write_plot_data(std::ostream& out, std::span<const Answer> answers);

}  // namespace pipesim
