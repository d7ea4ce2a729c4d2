// A recording as the program that ran: which pass of which stage and microbatch each interval was,
// and which iterations count.
//
// Numbers that the format leaves out are counted. With one chunk, the n-th F of a rank is
// microbatch n. With several, the n-th pass is that of a named schedule whose kinds of passes come
// in the same order. The first 3 iterations are warm-up (half of them where there are fewer than
// 6). An iteration with other passes than the rest is left out. InputError where none of this is
// possible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/interop/passes/recording.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct RecordedRun {
  Recording recording;
  Program program;
  std::string schedule;            // a registered one with this order; empty: none has it
  std::vector<size_t> iterations;  // of the recording, that count
  std::vector<int> left_out;       // numbers of iterations whose passes differ
  int warm_up = 0;                 // iterations before those that count
};

// `schedule` names what ran, or is empty; `asked` locates the name.
RecordedRun recorded_run(Recording recording, const std::string& schedule, const Location& asked);

}  // namespace pipesim
