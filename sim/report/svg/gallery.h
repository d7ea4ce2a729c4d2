// Every registered schedule on one small example, so that they can be compared by eye.
//
// Four devices, eight microbatches, F = B = W = 1 s on a whole device whatever its chunks. An
// overlapped block takes as long as its two passes, messages are free, an activation is held until
// W. A schedule that refuses that shape gets the nearest one that it accepts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planning/schedule.h"
#include "sim/prepare/advice.h"

namespace pipesim {

struct GalleryEntry {
  const Schedule* schedule = nullptr;
  std::optional<Answer> answer;  // nothing: there is no picture, and `why` says why not
  std::string why;
};

GalleryEntry gallery_entry(const Schedule& schedule);

// The page (Markdown) that shows gallery/NAME.svg of each entry with its bubble and peak.
std::string gallery_page(const std::vector<GalleryEntry>& gallery);

}  // namespace pipesim
