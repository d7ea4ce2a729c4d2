// A timeline as Chrome/Perfetto trace JSON: devices as processes, streams as threads, flow arrows
// for messages, memory as counters. Streams to `out` in bounded memory.
#pragma once

#include <iosfwd>
#include <string>

#include "sim/scenario/simulate.h"

namespace pipesim {

// Times in microseconds. `name` labels the trace's schedule.
void write_trace(std::ostream& out, const Simulation& simulation, const std::string& name);

}  // namespace pipesim
