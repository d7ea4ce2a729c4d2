#include "validate/calibration/harness/machine.h"

#include <array>
#include <fstream>
#include <unistd.h>

namespace pipesim::calibration {

Machine this_machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return {name.data(), std::string(name.data()) + "/" + boot};
}

}  // namespace pipesim::calibration
