#include "app/refusals.h"

#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim {

std::string refusals(std::span<const RefusedSchedule> refused) {
  std::string text;
  for (const auto& [schedule, label, reason] : refused) {
    // The reason often begins with the schedule's name.
    const bool named = reason.starts_with(label + ": ");
    text +=
        fmt::format("{}: refused: {}\n", label, named ? reason.substr(label.size() + 2) : reason);
  }
  return text;
}

void refuse_all(std::span<const RefusedSchedule> refused) {
  const std::string why = refusals(refused);
  throw InfeasibleError("no schedule can be met\n" + why.substr(0, why.size() - 1));
}

}  // namespace pipesim
