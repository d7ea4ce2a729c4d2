// The text of a cell in a CSV; csv_reader.h says which there are.
#pragma once

#include <cstdint>
#include <string>

#include "sim/pipeline/copy_cells.h"
#include "sim/pipeline/pass.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

enum class CellLetters : std::uint8_t { kTorch, kProgram };  // the latter: Program::text's

// A pass in a cell, with `splits` splits of each microbatch. A vocabulary pass ignores `vs`; no
// kFB.
std::string cell_text(const Placement& place, int splits, PassKind kind, int vs, int unit,
                      CellLetters letters = CellLetters::kTorch);
std::string cell_text(const Placement& place, int splits, const CopyCell& copy);

}  // namespace pipesim
