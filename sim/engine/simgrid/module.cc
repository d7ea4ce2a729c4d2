// The exports of the module that loads SimGrid.
#include <memory>

#include "sim/engine/simgrid/execution.h"
#include "sim/engine/simgrid/platform.h"

namespace pipesim::simgrid_module {
namespace {

std::unique_ptr<Platform>& prepared() {
  static std::unique_ptr<Platform> platform;
  return platform;
}

void prepare(const Job& job) { prepared() = std::make_unique<Platform>(job); }

void run(std::uint64_t number) { Execution(*prepared(), number)(); }

}  // namespace
}  // namespace pipesim::simgrid_module

extern "C" const pipesim::JobModule* pipesim_simgrid_module() {
  static constexpr pipesim::JobModule kModule{pipesim::simgrid_module::prepare,
                                              pipesim::simgrid_module::run};
  return &kModule;
}
