#include "app/memory_limit.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/read/schedules.h"

namespace pipesim {

Option add_memory_limit(Parser& parser, std::string& limit, const std::string& otherwise) {
  return parser.add_option(
      "--memory-limit", limit,
      fmt::format("Memory of a GPU, such as '72 GiB', or a multiple of p x one microbatch's "
                  "activation on a device, such as 0.75 (default: {})",
                  otherwise));
}

std::variant<double, Bytes> activation_limit(const std::string& text, const Case& made,
                                             const Location& where) {
  const auto limit = parse_memory_limit(text, where);
  if (std::holds_alternative<double>(limit)) return limit;
  if (!knows_memory(*made.scenario)) {
    throw InputError(where,
                     "a limit in bytes needs a memory section that says what F acquires, or a "
                     "model");
  }
  if (!made.memory) return limit;
  const Bytes whole = std::get<Bytes>(limit);
  Bytes beside(0);
  for (const DeviceMemory& each : made.memory->devices) beside = std::max(beside, each.total());
  if (whole <= beside) {
    throw InfeasibleError(
        fmt::format("{} of a GPU leave no room for activations: what is beside "
                    "them takes {}",
                    human(whole), human(beside)));
  }
  return whole - beside;
}

}  // namespace pipesim
