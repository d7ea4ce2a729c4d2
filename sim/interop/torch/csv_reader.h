// Reads a pipeline schedule in PyTorch's CSV form: a row per rank, a cell per action.
//
// A cell is `<stage><kind><microbatch>` with PyTorch's letters: F forward, I input gradient
// (our B), W weight gradient, B both (our BW), R the forward again. `(3F0;1B2)OVERLAP_F_B` is
// an overlapped block; an idle slot is empty. Beyond PyTorch's: `2F0.1` is split 1 of a
// microbatch along the sequence; `S0`, `T0`, `IF0` and `IB0` are passes of the rank's share of
// the vocabulary. The program then counts as `vocab-2` until a scenario says otherwise. A
// stage on several ranks means as many copies of the model, which share the microbatches
// evenly, in order. `2OUT0`, `2IN0` and `2WAIT0` are of copies to the host
// (sim/pipeline/copy_cells.h). Sends and receives of PyTorch's default dump (SEND_F, RECV_F,
// SEND_B, RECV_B) are checked as calls that block (sim/interop/torch/messages.h); UNSHARD,
// RESHARD and REDUCE_GRAD are derived here, and skipped. Lines that begin with # are comments.
// Stage s is model stage s in forward order and stands on the rank whose row names it; ranks
// may hold unequal numbers of stages. Source: torch/distributed/pipelining/schedules.py
// (_Action, _load_csv).
#pragma once

#include <string>

#include "sim/core/error.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// InputError at the row and column of the first cell that is wrong or double. It is likewise thrown
// at a rank without a cell, and at a cell or message that waits for ever.
Program read_torch_csv(const std::string& name, const std::string& text);

// The same rows in the letters of Program::text: 2F0, 2B0, 2W0, 2BW0, 2R0, or 3F0&1BW2 for an
// overlapped block.
Program read_pass_rows(const std::string& name, const std::string& text);

// `asked` locates the request for the file, for when it cannot be read.
Program read_torch_csv_file(const std::string& path, const Location& asked);

}  // namespace pipesim
