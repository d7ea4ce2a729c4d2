#include "sim/report/drawing/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace pipesim {
namespace {

// Known by text, so that a kind which is added to Pass needs nothing here to be drawn.
struct Hue {
  std::string_view kind;
  std::string_view meaning;
  Colour light;
  Colour dark;
};

constexpr std::array kHues{
    Hue{"F", "forward", {0x7d, 0xb3, 0xf5}, {0x15, 0x5c, 0xb0}},
    Hue{"B", "input gradient", {0xd9, 0xa0, 0x44}, {0xa3, 0x4f, 0x10}},
    Hue{"W", "weight gradient", {0x6f, 0xeb, 0xa8}, {0x04, 0x44, 0x2a}},
    Hue{"BW", "both gradients", {0xd0, 0x8f, 0xb4}, {0x5c, 0x0a, 0x54}},
    Hue{"FB", "overlapped", {0xf3, 0xee, 0x8c}, {0x5f, 0x58, 0x00}},
    Hue{"R", "recompute", {0xe2, 0xe2, 0xe2}, {0x66, 0x66, 0x66}},
    // The vocabulary passes are short and share a hue; their letters tell them apart.
    Hue{"S", "output forward", {0xd6, 0xc9, 0xf7}, {0x44, 0x2a, 0x8c}},
    Hue{"T", "output backward", {0xd6, 0xc9, 0xf7}, {0x44, 0x2a, 0x8c}},
    Hue{"IF", "embedding forward", {0xd6, 0xc9, 0xf7}, {0x44, 0x2a, 0x8c}},
    Hue{"IB", "embedding backward", {0xd6, 0xc9, 0xf7}, {0x44, 0x2a, 0x8c}},
    Hue{"", "", {0xd6, 0xc9, 0xf7}, {0x44, 0x2a, 0x8c}},
};

const Hue& hue_of(PassKind kind) {
  const auto* const found = std::ranges::find(kHues, to_text(kind), &Hue::kind);
  return found == kHues.end() ? kHues.back() : *found;
}

// Relative luminance (WCAG 2.1).
double luminance(Colour colour) {
  const auto linear = [](int value) {
    const double c = value / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

}  // namespace

Colour fill_of(PassKind kind, int chunk, int chunks) {
  const Hue& hue = hue_of(kind);
  const double shade = chunks > 1 ? static_cast<double>(chunk) / (chunks - 1) : 0;
  const auto mixed = [shade](int light, int dark) {
    return static_cast<int>(std::lround(light + shade * (dark - light)));
  };
  return {mixed(hue.light.red, hue.dark.red), mixed(hue.light.green, hue.dark.green),
          mixed(hue.light.blue, hue.dark.blue)};
}

Colour text_on(Colour fill) {
  const double light = luminance(fill);
  const bool white = 1.05 / (light + 0.05) > (light + 0.05) / 0.05;
  return white ? Colour{255, 255, 255} : Colour{0, 0, 0};
}

std::string css(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

int terminal_colour(Colour colour) {
  constexpr std::array kLevels{0, 95, 135, 175, 215, 255};
  const auto nearest = [&kLevels](int value) {
    const auto* const level = std::ranges::min_element(
        kLevels, {}, [value](int each) { return each > value ? each - value : value - each; });
    return static_cast<int>(level - kLevels.begin());
  };
  return 16 + 36 * nearest(colour.red) + 6 * nearest(colour.green) + nearest(colour.blue);
}

std::string_view meaning_of(PassKind kind) { return hue_of(kind).meaning; }

}  // namespace pipesim
