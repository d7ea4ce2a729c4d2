// The result document of `pipesim run --json` (docs/reference/json.md) as a value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/prepare/advice.h"

namespace pipesim {

// A schedule of a comparison that cannot be met, and why.
struct RefusedSchedule {
  std::string schedule;
  std::string label;  // as Case's
  std::string reason;
};

struct JsonOptions {
  std::string version;
  bool timings = false;  // adds wall-clock "seconds", which differ from run to run
  std::vector<RefusedSchedule> refused = {};  // adds "refused" where there are any
};

nlohmann::ordered_json run_document(std::span<const Answer> answers, const JsonOptions& options);

}  // namespace pipesim
