// One piece of compute on one device, in 8 bytes, and its text form `<virtual
// stage><kind><microbatch>`.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/enum_array.h"

namespace pipesim {

enum class PassKind : std::uint8_t {
  kF,   // forward
  kB,   // gradient of the input
  kW,   // gradient of the weights
  kBW,  // B and W fused; the upstream stage gets its gradient at the end of both
  kFB,  // forward of one microbatch overlapped with BW, B or W of another
  kR,   // F run again on the same device, which rebuilds the activation before B or BW
  // Passes on a device's share of the vocabulary; their chunk is 0 (vocabulary.h).
  kS,   // output layer, forward
  kT,   // output layer, backward
  kIF,  // input embedding, forward
  kIB,  // input embedding, backward
};
inline constexpr int kPassKinds = 10;
template <>
inline constexpr std::size_t kSizeOf<PassKind> = kPassKinds;

constexpr bool is_backward(PassKind kind) { return kind == PassKind::kB || kind == PassKind::kBW; }
constexpr bool is_vocabulary(PassKind kind) { return kind >= PassKind::kS; }

constexpr std::string_view to_text(PassKind kind) {
  constexpr EnumArray<PassKind, std::string_view> kNames{"F", "B", "W", "BW", "FB",
                                                         "R", "S", "T", "IF", "IB"};
  return kNames[kind];
}

constexpr bool runs_beside_forward(PassKind kind) {
  return kind == PassKind::kBW || kind == PassKind::kB || kind == PassKind::kW;
}

// The work of a stage that a pass does; an overlapped block does that of F and BW.
struct PassWork {
  bool forward = false;
  bool again = false;  // a forward that has run before
  bool input_gradient = false;
  bool weight_gradient = false;

  [[nodiscard]] constexpr bool backward() const { return input_gradient || weight_gradient; }
};

constexpr PassWork work_of(PassKind kind) {
  switch (kind) {
    case PassKind::kF:
      return {.forward = true};
    case PassKind::kB:
      return {.input_gradient = true};
    case PassKind::kW:
      return {.weight_gradient = true};
    case PassKind::kBW:
      return {.input_gradient = true, .weight_gradient = true};
    case PassKind::kFB:
      return {.forward = true, .input_gradient = true, .weight_gradient = true};
    case PassKind::kR:
      return {.again = true};
    default:
      return {};
  }
}

struct Pass {
  PassKind kind = PassKind::kF;
  std::uint16_t chunk = 0;
  // Global number of the unit (see Shape::units). For kFB: index into Program::pairs().
  std::uint32_t microbatch = 0;

  friend bool operator==(const Pass&, const Pass&) = default;
};
static_assert(sizeof(Pass) == 8);

constexpr Pass make_pass(PassKind kind, int microbatch, int chunk = 0) {
  return {kind, static_cast<std::uint16_t>(chunk), static_cast<std::uint32_t>(microbatch)};
}

// The two passes that an overlapped block runs: an F, and a BW (DualPipe), B or W of another
// microbatch (STP has all three). It starts when both could, and both have ended when it has.
struct OverlappedPair {
  Pass forward;
  Pass backward;
  friend bool operator==(const OverlappedPair&, const OverlappedPair&) = default;
};

}  // namespace pipesim
