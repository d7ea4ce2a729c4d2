// A schedule as an SVG drawing in the papers' style. Each device has a row and each pass a box with
// its microbatch. Bubbles are white, and time in units is below.
//
// Colours are those of palette.h: a hue per kind, chunk 0 light under dark numbers, the last chunk
// dark under light ones. An overlapped block is its two passes, forward above backward. The text
// stands for itself (no script, font or image from elsewhere) and is the same bytes for the same
// simulation.
//
// Up to kMostBoxes passes each has a box, whose width is its seconds; its number is left out where
// it does not fit. Beyond, a row is cut into pixels, each in the colour of the pass that covers
// most of it. Neighbours of one colour are one stroke; a line says so. So no drawing has more than
// about kMostBoxes elements, or than devices x kPixels strokes.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/case/simulate.h"

namespace pipesim {

inline constexpr size_t kMostBoxes = 20000;
inline constexpr size_t kPixels = 1200;

// How long the time axis is, and how wide: drawings with the same one can be laid over each other.
struct SvgAxis {
  double seconds = 0;
  double pixels = 0;
};

// That of a result alone.
SvgAxis axis_of(const Result& result);

struct SvgOptions {
  std::string name;                  // of the schedule, for the title; any text
  bool bytes = true;                 // peak activation in bytes too, not only in microbatches
  std::optional<SvgAxis> axis = {};  // no shorter than the result's
  std::string prefix = {};           // of class names, where two drawings stand in one document
  std::vector<std::optional<size_t>> marked = {};  // by device: the position of a pass in a frame
};

struct SvgSize {
  double width = 0;
  double height = 0;
};

// Draws the first pipeline's middle iteration (of an ensemble: of its first run). O(passes).
SvgSize write_svg(std::ostream& out, const Case& made, const Result& result,
                  const SvgOptions& options);

// "p = 4, m = 8, bubble 28.63%, peak activation 4 microbatches": the numbers of the title. A peak
// counts microbatches on a whole device, the device that keeps most for one being the measure.
std::string headline(const Case& made, const Result& result, bool bytes);

}  // namespace pipesim
