// The call of a device in which each message is sent and received. Each framework has one function
// (sim/pipeline/call_groups.h); all rest on what the frameworks' own code does. O(passes).
#pragma once

#include "sim/execution/message_ends.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// A call before every pass: what the pass before it made, and what it waits for.
Posts calls_before_every_pass(const std::vector<Part>& parts);

// Megatron-LM's p2p_communication calls, in its schedules with and without interleaving. Requires a
// program without overlapped blocks.
Posts calls_of_megatron(const Program& program, const Parts& all, int device);

// DualPipe's step(). Requires two chunks.
Posts calls_of_dual_pipe(const Program& program, const Parts& all, int device);

}  // namespace pipesim
