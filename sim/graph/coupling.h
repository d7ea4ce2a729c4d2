// The waits of iterations and devices beside the inputs of passes.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/graph/optimizer_sync.h"
#include "sim/pipeline/call_groups.h"

namespace pipesim {

// Iterations that run into each other: the program has the microbatches of all of them, one after
// the other.
struct Stream {
  std::uint32_t units = 0;  // of one iteration, which begins on a device with the first F of them
  std::uint32_t units_per_step = 0;  // after the BW or W of so many, a device steps
  friend bool operator==(const Stream&, const Stream&) = default;
};

struct Coupling {
  OptimizerSync sync = OptimizerSync::kNone;
  std::optional<Stream> stream = {};  // under kAsynchronous, and only there
  // Transfers hold the compute stream, in the calls of this framework (comm_batches.h). Empty: they
  // overlap it.
  std::optional<CallGroups> blocking = {};
  friend bool operator==(const Coupling&, const Coupling&) = default;
};

}  // namespace pipesim
