// A schedule as a picture of text: one line per device, time from left to right.
#pragma once

#include <string>

#include "sim/case/simulate.h"

namespace pipesim {

struct PictureOptions {
  int columns = 120;    // of the drawing, labels not counted
  bool colour = false;  // of a terminal with 256 colours; sim/report/drawing/palette.h
};

// The first pipeline's middle iteration. A column belongs to the pass that covers most of it. A
// pass shows its letter, then its microbatch's digits as far as its columns go; '.' is idle.
std::string draw(const Result& result, const PictureOptions& options);

// The passes of each device in order, one line per device; among them the copies to the host of
// devices that share no link (sim/pipeline/copy_cells.h).
std::string pass_lists(const Program& program);

}  // namespace pipesim
