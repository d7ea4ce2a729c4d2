#include "sim/core/stop.h"

#include <gtest/gtest.h>
#include <thread>

namespace pipesim {
namespace {

TEST(StopOn, StopsItsThreadOnceAsked) {
  std::atomic<bool> asked = false;
  check_stop();  // nobody can ask
  {
    const StopOn stopping(asked);
    check_stop();
    asked = true;
    EXPECT_THROW(check_stop(), Stopped);
    std::thread([] { EXPECT_NO_THROW(check_stop()); }).join();
  }
  EXPECT_NO_THROW(check_stop());
}

TEST(StopOn, CountsTheLastOneMade) {
  const std::atomic<bool> asked = true;
  const std::atomic<bool> not_asked = false;
  const StopOn outer(asked);
  {
    const StopOn inner(not_asked);
    EXPECT_NO_THROW(check_stop());
  }
  EXPECT_THROW(check_stop(), Stopped);
}

}  // namespace
}  // namespace pipesim
