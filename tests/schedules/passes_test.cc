// A record's passes, known before anything is planned.
#include <gtest/gtest.h>

#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::passes_test {
namespace {

TEST(SchedulePasses, BackwardsAreWholeWhereTheRecordSaysSo) {
  for (const Schedule* schedule : schedules()) {
    SCOPED_TRACE(schedule->name);
    int planned = 0;
    for (const Shape& shape : {Shape{4, 1, 8, 1}, Shape{4, 2, 8, 1}, Shape{3, 2, 9, 1}}) {
      Shape own = shape;
      own.splits = schedule->default_splits;
      if (own.chunks < schedule->min_chunks || own.chunks > schedule->max_chunks) continue;
      Problem problem = testing::make_problem(own, {10, 12, 8, 1});
      problem.placement = schedule->place(own.devices, own.chunks);
      problem.stages.resize(static_cast<size_t>(problem.placement.virtual_stages()),
                            problem.stages.front());
      for (StageCost& stage : problem.stages) {
        stage.overlapped = Seconds(25);
        stage.copy_out = stage.copy_in = Seconds(3);
      }
      const Problem planning = for_planning(problem, *schedule);
      if (schedule->refusal(planning)) continue;
      EXPECT_EQ(schedule->plan(planning).whole_backwards(), schedule->whole_backward);
      ++planned;
    }
    EXPECT_GT(planned, 0);
  }
}

// The record is asked about another shape than the one that costs are known of.
TEST(SchedulePasses, OfTooManyOrTooFewChunksAreRefusedWithTheNearest) {
  for (const Schedule* schedule : schedules()) {
    for (const int chunks : {1, 2, 3, 5}) {
      if (chunks >= schedule->min_chunks && chunks <= schedule->max_chunks) continue;
      SCOPED_TRACE(schedule->name);
      Problem problem = testing::make_problem({4, chunks, 8, 1});
      problem.activation_limit = Bytes(1);
      const auto refusal = schedule->refusal(problem);
      ASSERT_TRUE(refusal.has_value());
      EXPECT_GE(refusal->nearest.chunks, schedule->min_chunks);
      EXPECT_LE(refusal->nearest.chunks, schedule->max_chunks);
    }
  }
}

}  // namespace
}  // namespace pipesim::passes_test
