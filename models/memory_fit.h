// Answers if a GPU's memory holds a simulated peak whose error is known: yes, tight or no.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/core/units.h"

namespace pipesim {

// Where eight of ten measured peaks lie, as shares of the simulated one: `low` <= 1 <= `high`.
struct MemoryBand {
  double low = 1;
  double high = 1;
};

// `kTight`: the capacity lies inside the band.
enum class MemoryFit : std::uint8_t { kNo, kTight, kYes };
inline constexpr std::array<std::string_view, 3> kFitNames{"no", "tight", "yes"};

constexpr MemoryFit fit_of(Bytes peak, const MemoryBand& band, Bytes capacity) {
  if (band.low * peak > capacity) return MemoryFit::kNo;
  return band.high * peak > capacity ? MemoryFit::kTight : MemoryFit::kYes;
}

}  // namespace pipesim
