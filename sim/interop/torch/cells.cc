#include "sim/interop/torch/cells.h"

#include <fmt/format.h>
#include <string_view>

#include "sim/core/enum_array.h"

namespace pipesim {
namespace {

std::string unit_text(int splits, int unit) {
  return splits == 1 ? fmt::format("{}", unit) : fmt::format("{}.{}", unit / splits, unit % splits);
}

}  // namespace

std::string cell_text(const Placement& place, int splits, PassKind kind, int vs, int unit,
                      CellLetters letters) {
  if (is_vocabulary(kind)) return fmt::format("{}{}", to_text(kind), unit_text(splits, unit));
  constexpr EnumArray<PassKind, std::string_view> kTorch{"F", "I", "W", "B", "", "R"};
  return fmt::format("{}{}{}", place.model_stage(vs),
                     letters == CellLetters::kTorch ? kTorch[kind] : to_text(kind),
                     unit_text(splits, unit));
}

std::string cell_text(const Placement& place, int splits, const CopyCell& copy) {
  return fmt::format("{}{}{}{}", place.model_stage(copy.vs), to_text(copy.kind),
                     unit_text(splits, copy.unit), copy.alone ? kAlone : "");
}

}  // namespace pipesim
