// A timeline as Chrome/Perfetto trace JSON: devices as processes, streams as threads, flow arrows
// for messages, memory as counters. Streams to `out`: nothing is held per event (with copies to
// the host, the changes of memory are, since they must be sorted).
//
// Viewers demand, and tests/report/trace_format.h checks, that
//   - times are microseconds with three decimals, whole nanoseconds: readers cut finer digits, then
//     take neighbours for overlapping slices and drop one;
//   - process 0 and thread 0 are a viewer's own idle ones, and a thread's number is its alone;
//   - slices of one thread follow each other; overlapping ones are asynchronous, in tracks by name;
//   - an arrow's ends lie in slices, each number is one arrow.
#pragma once

#include <iosfwd>
#include <string>

#include "sim/case/simulate.h"

namespace pipesim {

// `name` labels the trace's schedule.
void write_trace(std::ostream& out, const Result& result, const std::string& name);

}  // namespace pipesim
