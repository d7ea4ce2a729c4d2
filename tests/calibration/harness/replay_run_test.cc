// Rows on the device that only keeps time take what its passes take alone.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "tests/calibration/harness/replay_rows.h"
#include "tests/calibration/harness/virtual_device.h"

namespace pipesim::calibration {
namespace {

namespace vd = virtual_device;

constexpr const char* kOffload = "{name: gis-h, offload: {chunks: 1}}";

// How much more than simulated a line may be, and how much less.
std::pair<double, double> most_and_least(const std::string& quantity, bool copies,
                                         Arrivals arrivals) {
  constexpr double kSame = 0.005;
  // This device's allocator lets go of what is still to be copied as soon as it is asked to.
  if (quantity == "peak of the allocator") return {kSame, copies ? 0.3 : kSame};
  // With nothing to wait for, a copy back could begin long before the host, three passes ahead,
  // asks for it.
  if (quantity == "total" && copies && arrivals == Arrivals::kAtStart) return {0.1, kSame};
  return {kSame, kSame};
}

TEST(ReplayRun, TakesWhatItsPassesTakeAlone) {
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "gis-h", "po-h", kOffload}) {
    SmallModel model(schedule);
    const auto device = make_gpu_device(model.slice());
    retime(model.simulation, model.stages, *device);
    for (int position = 0; position < 4; ++position) {
      for (const Arrivals arrivals : {Arrivals::kSimulated, Arrivals::kAtStart}) {
        const Comparison comparison = replay_and_compare(model.row(position), arrivals, 3, *device);
        for (const auto& line : comparison.lines) {
          if (line.quantity == "idle" || line.unit == "1") continue;
          const bool copies = comparison.find("copies out") != nullptr;
          const auto [most, least] = most_and_least(line.quantity, copies, arrivals);
          const std::string which = fmt::format("{}, device {}, {}: {}", schedule, position,
                                                to_text(arrivals), line.quantity);
          EXPECT_LE(line.error(), most) << which;
          EXPECT_GE(line.error(), -least) << which;
        }
      }
    }
  }
}

#ifdef PIPESIM_NCCL
// The message of the small model: 2048 x 2048 numbers of 16 bits.
constexpr double kMessageBytes = 2.0 * 2048 * 2048;

// Keeps the simulation, but with messages of that many seconds.
void resend(Result& simulation, double message) {
  const TaskGraph& graph = *simulation.graph;
  std::vector<double> seconds(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    seconds[task] = graph.task_class(task).kind == TaskKind::kTransfer
                        ? message
                        : simulation.timeline.end[task] - simulation.timeline.start[task];
  }
  simulation.timeline = make_replay_engine()->run(graph, Cluster{}, seconds);
}

TEST(ReplayRun, OfAllRowsBesideEachOtherTakesWhatPassesAndMessagesTake) {
  vd::state().devices = 4;
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "gis-h", "po-h", kOffload,
                               "{name: gis-h, offload: {chunks: 1, devices_per_link: 2}}"}) {
    SmallModel model(schedule);
    const auto pipeline = make_gpu_pipeline(model.slice(), 4);
    retime(model.simulation, model.stages, pipeline->device(0));
    const double message = (vd::kMessageUs + kMessageBytes / vd::kLinkBytesPerUs) * 1e-6;
    resend(model.simulation, message);
    const PipelineRows rows = rows_of(model.simulation, model.stages, Bytes(kMessageBytes));
    for (const Comparison& comparison : replay_and_compare(rows, 3, *pipeline)) {
      for (const char* quantity : {"total", "busy", "peak memory", "mean message"}) {
        ASSERT_NE(comparison.find(quantity), nullptr) << schedule << ": " << quantity;
        EXPECT_NEAR(comparison.find(quantity)->error(), 0, 0.01)
            << schedule << ", device " << comparison.device << ": " << quantity;
      }
    }
  }
  vd::state().devices = 1;
}

TEST(ReplayRun, OfMoreRowsThanThereAreCardsIsRefused) {
  const SmallModel model("1f1b");
  vd::state().devices = 3;
  EXPECT_THROW((void)make_gpu_pipeline(model.slice(), 4), InfeasibleError);
  vd::state().devices = 1;
}
#endif

TEST(ReplayRun, AlonePassesTakeTheSumOfTheirLayers) {
  const SmallModel model("zb-h1");
  const auto device = make_gpu_device(model.slice());
  const auto alone = [&](PassKind pass, StageContent stage) {
    return device->seconds_alone({TaskKind::kCompute, pass, stage, 0});
  };
  const double forward = alone(PassKind::kF, {1, false});
  EXPECT_NEAR(alone(PassKind::kF, {3, false}), 3 * forward, 1e-3 * forward);
  EXPECT_NEAR(alone(PassKind::kR, {3, true}), 3 * forward, 1e-3 * forward);
  EXPECT_GT(alone(PassKind::kF, {1, true}), 1.1 * forward);
  EXPECT_NEAR(alone(PassKind::kBW, {2, true}),
              alone(PassKind::kB, {2, true}) + alone(PassKind::kW, {2, true}), 1e-3 * forward);
  const double bytes = 1e8;
  EXPECT_NEAR(device->seconds_alone({TaskKind::kCopyOut, PassKind::kF, {}, bytes}),
              (vd::kLaunchUs + bytes / vd::kCopyBytesPerUs) * 1e-6, 1e-8);
  EXPECT_THROW((void)alone(PassKind::kFB, {1, false}), InfeasibleError);
}

TEST(ReplayRun, ReleasesWhatItTakes) {
  const std::size_t before = vd::state().allocations;
  {
    SmallModel model(kOffload);
    const auto device = make_gpu_device(model.slice());
    (void)replay(model.row(0), Arrivals::kAtStart, *device);
  }
  EXPECT_EQ(vd::state().allocations, before);
  const SmallModel model(kOffload);
  {
    // A row of which the card does not take all: the device goes, and so does what was acquired.
    Row row = model.row(0);
    const auto device = make_gpu_device(model.slice());
    row.blocks.back() = 1e12;
    EXPECT_ANY_THROW((void)replay(row, Arrivals::kAtStart, *device));
    EXPECT_THROW(device->begin(row), LogicError);
  }
  EXPECT_EQ(vd::state().allocations, before);
}

TEST(ReplayRun, NamesTheCardAndItsSoftware) {
  const SmallModel model("1f1b");
  const auto device = make_gpu_device(model.slice());
  Parameters facts = device->facts();
  ASSERT_GE(facts.size(), 5U);
  EXPECT_EQ(facts[0], (std::pair<std::string, std::string>("device", "Virtual GPU")));
  EXPECT_EQ(facts[1].first, "date");
  EXPECT_EQ(facts[2].first, "driver");
}

}  // namespace
}  // namespace pipesim::calibration
