// Models that tools/trace_torch.py described (docs/reference/traced.md).
#pragma once

#include <string>

#include "models/transformer.h"
#include "sim/core/error.h"

namespace pipesim {

// True if the file says that it is one. False where it cannot be read.
bool is_traced_file(const std::string& path);

// InputError at the value in the file that is not understood; at `asked` when the file cannot be
// read. The model is called as the file, less its ending.
Transformer read_traced_file(const std::string& path, const Location& asked);

}  // namespace pipesim
