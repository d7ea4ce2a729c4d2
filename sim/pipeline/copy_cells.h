// Copies to the host and back, in two forms. Cells stand between the passes of a device, as in the
// rows of a CSV (sim/interop/torch/csv_reader.h); the plan stands beside a program's passes
// (sim/pipeline/copies.h).
//
// In a row,
//   2OUT0   behind 2F0: the activation leaves, in the order of these cells;
//   2IN0    behind it and before the pass that needs it: it comes back once the pass before
//           has ended, in the order of these cells;
//   2WAIT0  behind it: the next pass waits for the end of the copy out, whose room it needs.
// Every device has a link of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/program.h"

namespace pipesim {

enum class CopyCellKind : std::uint8_t { kOut, kIn, kWait };
constexpr std::string_view to_text(CopyCellKind kind) {
  return kind == CopyCellKind::kOut ? "OUT" : kind == CopyCellKind::kIn ? "IN" : "WAIT";
}
// Behind a copy's cell: the other direction of its link is silent meanwhile.
inline constexpr std::string_view kAlone = "ALONE";

struct CopyCell {
  CopyCellKind kind = CopyCellKind::kOut;
  int device = 0;
  std::size_t position = 0;  // of the next pass of the device
  int vs = 0;
  int unit = 0;
  bool alone = false;  // Copy::alone

  friend bool operator==(const CopyCell&, const CopyCell&) = default;
};

struct CopyCellFault {
  std::size_t cell = 0;
  std::string message;
};

// Positions on its device of an activation's F and of the first pass that needs it again.
struct Stay {
  static constexpr std::uint32_t kNowhere = 0xffffffff;
  std::uint32_t made = kNowhere;
  std::uint32_t needed = kNowhere;
};
// By virtual stage and unit. O(passes).
Grid<Stay> stays_of(const Program& program);

// The first cell that stands where it cannot, or without what belongs to it. Stages and units are
// those of the program. O(passes + cells).
std::optional<CopyCellFault> find_copy_fault(const Program& program,
                                             std::span<const CopyCell> cells);

// The program with these copies, in which there is no fault. Cells of a device stand in order.
Program with_copy_cells(const Program& program, std::span<const CopyCell> cells);

// The cells of a program's copies, device by device; nothing where they cannot say its plan, as
// that of links which devices share.
std::optional<std::vector<CopyCell>> copy_cells_of(const Program& program);

}  // namespace pipesim
