#include "sim/core/thread_team.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

namespace pipesim::thread_team_test {
namespace {

TEST(ThreadTeam, RunsEveryTurnOfManyLoopsOnce) {
  for (const int threads : {0, 1, 2, 5}) {
    ThreadTeam team(threads);
    for (size_t count = 0; count < 300; ++count) {
      std::vector<int> turns(count);
      team.run(count, [&](size_t i) { ++turns[i]; });
      EXPECT_EQ(turns, std::vector<int>(count, 1));
    }
  }
}

TEST(ThreadTeam, ThrowsTheFirstExceptionAndRunsAgain) {
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::atomic<int> begun = 0;
    const auto fail = [&](size_t i) {
      ++begun;
      if (i == 10) throw std::runtime_error("the eleventh");
    };
    EXPECT_THROW(team.run(1000, fail), std::runtime_error);
    EXPECT_GE(begun, 11);
    EXPECT_LE(begun, threads == 1 ? 11 : 1000);
    int after = 0;
    team.run(1, [&](size_t) { ++after; });
    EXPECT_EQ(after, 1);
  }
}

}  // namespace
}  // namespace pipesim::thread_team_test
