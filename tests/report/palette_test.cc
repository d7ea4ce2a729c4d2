#include "sim/report/drawing/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>

namespace pipesim::palette_test {
namespace {

constexpr std::array kKinds{PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kBW};
using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

Vector linear(Colour colour) {
  Vector result{};
  const std::array values{colour.red, colour.green, colour.blue};
  for (size_t i = 0; i < 3; ++i) {
    const double c = values[i] / 255.0;
    result[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return result;
}

Vector product(const Matrix& matrix, const Vector& vector) {
  Vector result{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * vector[j];
  }
  return result;
}

// CIE L*a*b* of what a reader sees.
Vector lab(Colour colour, const Matrix& sight) {
  constexpr Matrix kToXyz{
      {{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}};
  Vector seen = product(sight, linear(colour));
  for (double& value : seen) value = std::clamp(value, 0.0, 1.0);
  Vector xyz = product(kToXyz, seen);
  xyz[0] /= 0.9505;
  xyz[2] /= 1.089;
  for (double& value : xyz) {
    value = value > 0.008856 ? std::cbrt(value) : 7.787 * value + 16.0 / 116;
  }
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

double distance(const Vector& a, const Vector& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

double luminance(Colour colour) {
  const Vector rgb = linear(colour);
  return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}

TEST(Palette, TextStandsOutOnEveryShade) {
  for (int kind = 0; kind < kPassKinds; ++kind) {
    for (const int chunks : {1, 2, 3, 4, 7}) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const Colour fill = fill_of(static_cast<PassKind>(kind), chunk, chunks);
        const double a = luminance(fill) + 0.05, b = luminance(text_on(fill)) + 0.05;
        EXPECT_GE(std::max(a, b) / std::min(a, b), 4.5) << kind << " " << chunk;
      }
    }
  }
}

TEST(Palette, ChunkZeroHasDarkTextAndTheLastChunkLightText) {
  for (int kind = 0; kind < kPassKinds; ++kind) {
    const auto pass = static_cast<PassKind>(kind);
    EXPECT_EQ(text_on(fill_of(pass, 0, 1)), (Colour{0, 0, 0}));
    EXPECT_EQ(text_on(fill_of(pass, 0, 2)), (Colour{0, 0, 0}));
    EXPECT_EQ(text_on(fill_of(pass, 1, 2)), (Colour{255, 255, 255}));
  }
}

// Sight without the cones for red, or for green (Machado, Oliveira and Fernandes 2009, severity 1).
// A difference of 20 is seen at a
// glance.
TEST(Palette, KindsStayApartForColourBlindReaders) {
  constexpr Matrix kAll{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  constexpr Matrix kNoRed{{{0.152286, 1.052583, -0.204868},
                           {0.114503, 0.786281, 0.099216},
                           {-0.003882, -0.048116, 1.051998}}};
  constexpr Matrix kNoGreen{{{0.367322, 0.860646, -0.227968},
                             {0.280085, 0.672501, 0.047413},
                             {-0.011820, 0.042940, 0.968881}}};
  for (const Matrix& sight : {kAll, kNoRed, kNoGreen}) {
    for (const int chunk : {0, 1}) {
      for (size_t a = 0; a < kKinds.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          EXPECT_GE(distance(lab(fill_of(kKinds[a], chunk, 2), sight),
                             lab(fill_of(kKinds[b], chunk, 2), sight)),
                    20)
              << to_text(kKinds[a]) << " " << to_text(kKinds[b]) << " chunk " << chunk;
        }
      }
    }
  }
}

TEST(Palette, KindsAndShadesDifferOnATerminalToo) {
  std::array<int, 2 * kKinds.size()> colours{};
  size_t next = 0;
  for (const PassKind kind : kKinds) {
    for (const int chunk : {0, 1}) colours[next++] = terminal_colour(fill_of(kind, chunk, 2));
  }
  std::sort(colours.begin(), colours.end());
  EXPECT_EQ(std::adjacent_find(colours.begin(), colours.end()), colours.end());
  EXPECT_EQ(terminal_colour({0, 0, 0}), 16);
  EXPECT_EQ(terminal_colour({255, 255, 255}), 231);
  EXPECT_EQ(terminal_colour({90, 0, 140}), 16 + 36 + 2);
}

}  // namespace
}  // namespace pipesim::palette_test
