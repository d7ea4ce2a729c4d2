// The machine that this process runs on.
#pragma once

#include <string>

namespace pipesim::calibration {

struct Machine {
  std::string name;
  std::string id;  // another for every machine, told apart as NCCL does: by name and boot
};

[[nodiscard]] Machine this_machine();

}  // namespace pipesim::calibration
