// Writes a program in PyTorch's schedule CSV (sim/interop/torch/csv_reader.h reads it): a row per
// rank.
#pragma once

#include <iosfwd>
#include <string_view>

#include "sim/pipeline/program.h"

namespace pipesim {

// Cells are in time slots of one unit per pass, idle slots empty, so that a cell's inputs are in
// earlier columns. PyTorch's slot-by-slot runtime relies on that; its action-list runtime ignores
// it. An overlapped block is `(3F0;1B2)OVERLAP_F_B` (or with I or W), which only the latter knows.
// Throws InfeasibleError, naming the schedule, for a program that PyTorch's runtime would refuse
// (sim/interop/torch/rules.h).
void write_torch_csv(std::ostream& out, const Program& program,
                     std::string_view name = "this schedule");

// The same rows for whatever the reader knows. They may have R, splits, passes of a shared
// vocabulary, copies of the model and copies to the host too. Throws InfeasibleError for host links
// that devices share and for a program that does not wait for every message.
void write_csv(std::ostream& out, const Program& program, std::string_view name = "this schedule");

}  // namespace pipesim
