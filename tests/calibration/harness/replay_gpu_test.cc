// Rows on a GPU, or on the device that only keeps time: all that they need they wait for. Without
// a GPU each test is skipped, and says so.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>

#include "tests/calibration/harness/replay_rows.h"

namespace pipesim::calibration {
namespace {

// Events follow the clock that arrivals are held to by a launch.
constexpr double kClocks = 20e-6;

class ReplayedRow : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpus(1); !reason.empty()) {
      GTEST_SKIP() << "needs a GPU: " << reason;
    }
  }
};

void expect_in_order(const Row& row, const Executed& executed, Arrivals arrivals) {
  std::array<double, kLanes> lane_end{};
  lane_end.fill(row.origin);
  for (std::size_t number = 0; number < row.actions.size(); ++number) {
    const Action& action = row.actions[number];
    const double start = executed.start[number];
    double& before = lane_end[static_cast<std::size_t>(action.lane)];
    EXPECT_GE(start, before) << action.name;
    EXPECT_GT(executed.end[number], start) << action.name;
    before = executed.end[number];
    for (const std::uint32_t other : action.waits_for) {
      EXPECT_GE(start, executed.end[other]) << action.name;
    }
    const double arrival = arrivals == Arrivals::kSimulated ? action.arrival : row.origin;
    EXPECT_GE(start, arrival - kClocks) << action.name;
  }
}

TEST_P(ReplayedRow, WaitsForAllThatItNeedsAndHoldsTheMemoryThatItSays) {
  SmallModel model(GetParam());
  const auto device = make_gpu_device(model.slice());
  retime(model.simulation, model.stages, *device);
  for (const int position : {0, 3}) {
    const Row row = model.row(position);
    for (const Arrivals arrivals : {Arrivals::kSimulated, Arrivals::kAtStart}) {
      for (int run = 0; run < 2; ++run) {
        const Executed executed = replay(row, arrivals, *device);
        expect_in_order(row, executed, arrivals);
        // At least the largest block was there, and never more than all of them.
        double all = 0;
        for (const double bytes : row.blocks) all += bytes;
        ASSERT_TRUE(executed.allocator_peak.has_value());
        EXPECT_GE(*executed.allocator_peak, std::ranges::max(row.blocks));
        EXPECT_LE(*executed.allocator_peak, 1.01 * all);
      }
    }
  }
}

TEST(ReplayedPipeline, SendsWhatRowsWaitFor) {
  if (const std::string reason = why_no_gpus(4); !reason.empty()) {
    GTEST_SKIP() << "needs 4 GPUs: " << reason;
  }
  for (const char* schedule : {"1f1b", "zb-v"}) {
    SmallModel model(schedule);
    const auto pipeline = make_gpu_pipeline(model.slice(), 4);
    retime(model.simulation, model.stages, pipeline->device(0));
    const PipelineRows rows = rows_of(model.simulation, model.stages, Bytes(8 << 20));
    for (int run = 0; run < 2; ++run) {
      const ExecutedPipeline executed = replay(rows, *pipeline);
      for (std::size_t device = 0; device < rows.rows.size(); ++device) {
        // Arrivals are of the iteration's own messages alone.
        expect_in_order(rows.rows[device], executed.rows[device], Arrivals::kAtStart);
      }
      for (const double seconds : executed.messages) EXPECT_GT(seconds, 0) << schedule;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, ReplayedRow,
                         testing::Values("1f1b", "zb-h1", "zb-v", "gis-h", "po-h",
                                         "{name: gis-h, offload: {chunks: 1}}",
                                         "{name: 1f1b, recompute: full}"));

}  // namespace
}  // namespace pipesim::calibration
