// The colours of passes, for terminals and drawings alike: a hue per kind, a shade per chunk.
//
// Chunk 0 is light under dark text, the last chunk dark under light text. F, B, W, BW and R stay
// apart for readers who do not tell red from green. Text reaches a contrast of 4.5 on every shade
// (WCAG 2.1, 1.4.3). Tests hold both.
#pragma once

#include <string>
#include <string_view>

#include "sim/pipeline/pass.h"

namespace pipesim {

struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

// An overlapped block has no hue of its own in a drawing: its halves have theirs. A kind that this
// file does not know shares one with its like.
Colour fill_of(PassKind kind, int chunk, int chunks);

// Black or white, whichever stands out more.
Colour text_on(Colour fill);

std::string css(Colour colour);  // "#9cccf0"

// The nearest of the 216 colours of a terminal with 256, whose values do not depend on its theme.
int terminal_colour(Colour colour);

// "forward", "weight gradient": for legends. Empty for a kind that this file does not know.
std::string_view meaning_of(PassKind kind);

}  // namespace pipesim
