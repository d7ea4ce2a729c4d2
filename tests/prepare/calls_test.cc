// How often comparing schedules makes a case: once each. The linker leads calls of make_case here
// (tests/CMakeLists.txt).
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "sim/case/make_case.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {

int calls_of_make_case = 0;

// NOLINTBEGIN(readability-identifier-naming): the linker's names
Case real_make_case(Outline outline, const Layout* balanced) __asm__(
    "__real__ZN7pipesim9make_caseENS_7OutlineEPKNS_6LayoutE");
Case counted_make_case(Outline outline, const Layout* balanced) __asm__(
    "__wrap__ZN7pipesim9make_caseENS_7OutlineEPKNS_6LayoutE");
// NOLINTEND(readability-identifier-naming)

Case counted_make_case(Outline outline, const Layout* balanced) {
  ++calls_of_make_case;
  return real_make_case(std::move(outline), balanced);
}

}  // namespace pipesim

namespace pipesim::calls_test {
namespace {

int calls_to_compare(const char* file) {
  const auto scenario = std::make_shared<const Scenario>(read_scenario_file(file, {}));
  calls_of_make_case = 0;
  for (Prepared& each : prepare_all(scenario)) {
    if (each.made) (void)answer(*std::move(each.made));
  }
  EXPECT_GE(calls_of_make_case, static_cast<int>(scenario->schedules.size()));
  return calls_of_make_case - static_cast<int>(scenario->schedules.size());
}

TEST(Calls, ASchedulesCaseIsMadeOnce) {
  EXPECT_EQ(calls_to_compare(PIPESIM_SOURCE_DIR "/scenarios/quickstart.yaml"), 0);
  EXPECT_EQ(calls_to_compare(PIPESIM_SOURCE_DIR "/scenarios/llama3-70b-h100.yaml"), 0);
  EXPECT_EQ(calls_to_compare(PIPESIM_SOURCE_DIR "/scenarios/what-if/pairs.yaml"), 0);
}

}  // namespace
}  // namespace pipesim::calls_test
