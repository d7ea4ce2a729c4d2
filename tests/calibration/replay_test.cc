// Rows on a device whose work takes the simulated time, and what happens when it does not.
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/app/command.h"
#include "validate/calibration/replay_clock.h"
#include "validate/calibration/replay_layer.h"
#include "validate/calibration/replay_report.h"

namespace pipesim::calibration::replay_test {
namespace {

// Unequal passes, messages that take time, copies that two devices of a link share.
constexpr const char* kScenario = R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 7 ms, transfer: 1 ms,
       copy_out: 5 ms, copy_in: 6 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)";
constexpr const char* kLinks = "{chunks: 1, devices_per_link: 2}";

struct Replayed {
  explicit Replayed(const Scenario& scenario)
      : made(prepare_first(scenario)), simulation(simulate(made)) {}

  Case made;
  Result simulation;

  [[nodiscard]] Row row(int device) const {
    Row row = row_of(simulation, stage_contents(made), device);
    row.schedule = made.choice.name;
    return row;
  }
};

Replayed simulated(const std::string& schedule, std::vector<Override> more = {}) {
  more.push_back({"schedule", schedule, {}});
  return Replayed(read_scenario(YamlSource("test", kScenario, more)));
}

double line(const Comparison& comparison, const std::string& quantity) {
  const auto* found = comparison.find(quantity);
  if (found == nullptr) throw LogicError("no line " + quantity);
  return found->measured;
}

class Rows : public ::testing::TestWithParam<const char*> {};

TEST_P(Rows, TakeOnAClockWhatTheSimulationSays) {
  const Replayed replayed = simulated(GetParam());
  for (const DeviceReport& device : replayed.simulation.report.devices) {
    const Row row = replayed.row(device.device);
    ClockDevice clock;
    const Executed executed = replay(row, Arrivals::kSimulated, clock);
    for (std::size_t i = 0; i < row.actions.size(); ++i) {
      EXPECT_DOUBLE_EQ(executed.start[i], row.actions[i].start) << row.actions[i].name;
      EXPECT_DOUBLE_EQ(executed.end[i], row.actions[i].end) << row.actions[i].name;
    }
    const Comparison comparison = compare(row, Arrivals::kSimulated, executed);
    EXPECT_NEAR(line(comparison, "total"), device.span.value(), 1e-12);
    EXPECT_NEAR(line(comparison, "busy"), device.busy.value(), 1e-12);
    EXPECT_EQ(line(comparison, "peak memory"), device.peak_activation.value());
    for (const auto& each : comparison.lines) EXPECT_NEAR(each.error(), 0, 1e-12) << each.quantity;
  }
}

TEST_P(Rows, TakeNoLongerWhenAllArrivesAtTheStart) {
  const Replayed replayed = simulated(GetParam());
  for (const DeviceReport& device : replayed.simulation.report.devices) {
    ClockDevice clock;
    const Comparison comparison =
        replay_and_compare(replayed.row(device.device), Arrivals::kAtStart, 3, clock);
    EXPECT_LE(line(comparison, "total"), device.span.value() + 1e-12);
    EXPECT_GE(line(comparison, "total"), device.busy.value() - 1e-12);
    for (const auto& each : comparison.lines) EXPECT_EQ(each.error(), 0) << each.quantity;
    // Passes that wait for nobody follow each other, unless copies hold them up.
    if (comparison.find("copies out") == nullptr) {
      EXPECT_NEAR(line(comparison, "idle"), 0, 1e-12);
    }
  }
}

void expect_as_simulated(const PipelineRows& rows, const ExecutedPipeline& executed) {
  for (std::size_t device = 0; device < rows.rows.size(); ++device) {
    const Row& row = rows.rows[device];
    for (std::size_t i = 0; i < row.actions.size(); ++i) {
      EXPECT_NEAR(executed.rows[device].start[i], row.actions[i].start, 1e-12)
          << row.actions[i].name;
      EXPECT_NEAR(executed.rows[device].end[i], row.actions[i].end, 1e-12) << row.actions[i].name;
    }
  }
}

TEST(Pipeline, HoldsBothEndsOfMessagesThatBlock) {
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-v"}) {
    const Replayed replayed = simulated(schedule, {{"framework.transfers", "blocking", {}}});
    const PipelineRows rows = rows_of(replayed.simulation, {}, Bytes(1e6));
    ClockPipeline clocks(4);
    expect_as_simulated(rows, replay(rows, clocks));
  }
}

TEST_P(Rows, TakeBesideEachOtherWhatTheSimulationSays) {
  const Replayed replayed = simulated(GetParam());
  const PipelineRows rows = rows_of(replayed.simulation, {}, Bytes(1e6));
  ASSERT_EQ(rows.rows.size(), 4U);
  ClockPipeline clocks(4);
  const ExecutedPipeline executed = replay(rows, clocks);
  expect_as_simulated(rows, executed);
  for (const Comparison& comparison : compare(rows, executed)) {
    EXPECT_NEAR(line(comparison, "mean message"), 1e-3, 1e-12);
    for (const auto& each : comparison.lines) EXPECT_NEAR(each.error(), 0, 1e-9) << each.quantity;
  }
}

// The engine gives a pass that takes longer on one device to all that wait for it; so must rows
// that are replayed beside each other, by their messages alone.
TEST_P(Rows, HandOnWhatOneOfThemTakesLonger) {
  Replayed replayed = simulated(GetParam());
  const PipelineRows before = rows_of(replayed.simulation, {}, Bytes(1e6));
  const auto slow = [](const Action& action) {
    return action.work.task == TaskKind::kCompute && action.name.starts_with("1F")
               ? 1.25 * action.seconds
               : action.seconds;
  };
  ClockPipeline clocks(4, slow);
  const ExecutedPipeline executed = replay(before, clocks);
  const TaskGraph& graph = *replayed.simulation.graph;
  std::vector<double> seconds(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    seconds[task] = graph.task_class(task).seconds.value();
    if (graph.task_class(task).kind == TaskKind::kCompute && graph.name(task).starts_with("1F")) {
      seconds[task] *= 1.25;
    }
  }
  replayed.simulation.timeline = make_replay_engine()->run(graph, Cluster{}, seconds);
  double moved = 0;
  const PipelineRows after = rows_of(replayed.simulation, {}, Bytes(1e6));
  std::map<std::string, double> ends;
  for (const Row& row : after.rows) {
    for (const Action& action : row.actions) {
      ends[std::to_string(row.device) + " " + std::to_string(static_cast<int>(action.lane)) + " " +
           action.name] = action.end;
    }
  }
  for (std::size_t device = 0; device < before.rows.size(); ++device) {
    const Row& row = before.rows[device];
    for (std::size_t i = 0; i < row.actions.size(); ++i) {
      const Action& action = row.actions[i];
      const double expected =
          ends.at(std::to_string(row.device) + " " + std::to_string(static_cast<int>(action.lane)) +
                  " " + action.name);
      EXPECT_NEAR(executed.rows[device].end[i], expected, 1e-12) << action.name;
      if (device != 1) moved = std::max(moved, executed.rows[device].end[i] - action.end);
    }
  }
  EXPECT_GT(moved, 2e-3) << "of devices that are as fast as before";
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, Rows,
    ::testing::Values("1f1b", "zb-h1", "zb-v", "gis-h", "po-h", "interleaved-1f1b", "zb-h2",
                      "{name: gis-h, offload: {chunks: 1, devices_per_link: 2}}",
                      "{name: 1f1b, recompute: full}", "{name: zb-h1, recompute: full}"));

// Output gradients that wait for W may be more than the inputs that B needs no longer.
TEST(Row, MayKeepMoreForWThanItsForwardsLeft) {
  const std::string file = std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml";
  const Replayed replayed(
      read_scenario(YamlSource::from_file(file, {}, {{"schedule", "zb-h1", {}}})));
  const Problem& problem = replayed.made.problem;
  EXPECT_GT(problem.stages.front().weight_stash, problem.stages.front().activation);
  for (const DeviceReport& device : replayed.simulation.report.devices) {
    const Row row = replayed.row(device.device);
    ClockDevice clock;
    const Comparison comparison =
        compare(row, Arrivals::kSimulated, replay(row, Arrivals::kSimulated, clock));
    EXPECT_NEAR(line(comparison, "peak memory"), device.peak_activation.value(), 16);
  }
}

// Every number of the comparison that is not as simulated, by name.
std::vector<std::string> wrong(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const auto& each : comparison.lines) {
    if (std::abs(each.error()) > 1e-9) names.push_back(each.quantity);
  }
  return names;
}

Comparison disturbed(const Row& row, ClockDevice::SecondsOf seconds_of,
                     Arrivals arrivals = Arrivals::kSimulated) {
  ClockDevice clock(std::move(seconds_of));
  return compare(row, arrivals, replay(row, arrivals, clock));
}

TEST(Disturbance, OfOnePassKindShowsInItsLine) {
  const Row row = simulated("zb-h1").row(1);
  const Comparison comparison = disturbed(row, [](const Action& action) {
    return action.work.pass == PassKind::kB ? 1.1 * action.seconds : action.seconds;
  });
  EXPECT_NEAR(comparison.find("mean B")->error(), 0.1, 1e-9);
  EXPECT_NEAR(comparison.find("mean F")->error(), 0, 1e-9);
  EXPECT_NEAR(comparison.find("mean W")->error(), 0, 1e-9);
  EXPECT_NEAR(line(comparison, "busy") - comparison.find("busy")->simulated, 12 * 1.2e-3, 1e-9);
  EXPECT_NEAR(comparison.find("peak memory")->error(), 0, 1e-9);
}

TEST(Disturbance, OfAPassWithNothingToWaitForLengthensTheTotalByAsMuch) {
  const Row row = simulated("1f1b").row(2);
  const Comparison comparison = disturbed(
      row,
      [](const Action& action) {
        return action.name == "2F5" ? action.seconds + 3e-3 : action.seconds;
      },
      Arrivals::kAtStart);
  EXPECT_EQ(wrong(comparison), (std::vector<std::string>{"total", "busy", "mean F"}));
  EXPECT_NEAR(line(comparison, "total") - comparison.find("total")->simulated, 3e-3, 1e-12);
}

TEST(Disturbance, OfCopiesShowsInTheirLinesAndHoldsPassesThatNeedTheRoom) {
  const Row row = simulated("{name: gis-h, offload: " + std::string(kLinks) + "}").row(0);
  const Comparison slow = disturbed(row, [](const Action& action) {
    return action.lane == Lane::kCopyOut ? 8 * action.seconds : action.seconds;
  });
  EXPECT_NEAR(slow.find("copies out")->error(), 7, 1e-9);
  EXPECT_NEAR(slow.find("copies back")->error(), 0, 1e-9);
  EXPECT_NEAR(slow.find("busy")->error(), 0, 1e-9);
  EXPECT_GT(slow.find("total")->error(), 0.01);
  EXPECT_EQ(slow.find("peak memory")->error(), 0);
}

TEST(Disturbance, OfWhenMemoryIsReleasedShowsInThePeak) {
  const Row row = simulated("{name: gis-h, offload: " + std::string(kLinks) + "}").row(0);
  Executed late;
  for (const Action& action : row.actions) {
    late.start.push_back(action.start);
    late.end.push_back(action.end + (action.lane == Lane::kCopyOut ? 1 : 0));
  }
  const Comparison comparison = compare(row, Arrivals::kSimulated, late);
  EXPECT_GT(comparison.find("peak memory")->error(), 0.05);
  EXPECT_EQ(wrong(comparison),
            (std::vector<std::string>{"copies out", "copies out overlapped", "peak memory"}));
}

TEST(Disturbance, OfNothingIsNone) {
  const Row row = simulated("po-h").row(3);
  EXPECT_TRUE(wrong(disturbed(row, {})).empty());
}

TEST(Row, AcquiresAndReleasesEveryBlockOnce) {
  const Row row = simulated("{name: gis-h, offload: " + std::string(kLinks) + "}").row(1);
  std::vector<int> acquired(row.blocks.size());
  std::vector<int> released(row.blocks.size());
  double bytes = 0;
  double copied = 0;
  for (const Action& action : row.actions) {
    for (const auto block : action.acquires) ++acquired[block];
    for (const auto block : action.releases) ++released[block];
    for (const auto block : action.acquires) bytes += row.blocks[block];
    if (action.lane == Lane::kCopyIn) copied += action.work.bytes;
  }
  EXPECT_EQ(acquired, std::vector<int>(row.blocks.size(), 1));
  EXPECT_EQ(released, acquired);
  EXPECT_GT(copied, 0);
  // Two chunks of 12 microbatches, and once more what came back.
  EXPECT_EQ(bytes, 12 * 2 * kGiB.value() + copied);
}

TEST(Row, OfAPostValidatedScheduleIsOneOfTheIterationsInTheMiddle) {
  const Replayed replayed = simulated("zb-h2", {{"optimizer.sync", "post_validation", {}}});
  ASSERT_GT(replayed.simulation.graph->iterations(), 1);
  const Row row = replayed.row(2);
  EXPECT_EQ(row.actions.size(), 36U);
  EXPECT_GT(row.origin, 0);
  EXPECT_TRUE(wrong(disturbed(row, {})).empty());
}

TEST(Row, IsRefusedForPassesThatHaveNoKernels) {
  const Replayed replayed = simulated(
      "dualpipe", {{"cost.overlapped", "25 ms", {}}, {"batch.num_microbatches", "16", {}}});
  EXPECT_THROW((void)replayed.row(0), InfeasibleError);
  EXPECT_THROW((void)simulated("1f1b").row(4), InfeasibleError);
}

// Times that a device finds for itself, and runs of a row of which each takes another time.
class Timed final : public ReplayDevice {
 public:
  [[nodiscard]] Parameters facts() const override { return {}; }
  [[nodiscard]] double seconds_alone(const DeviceWork& work) override {
    ++asked;
    return work.pass == PassKind::kF ? 4e-3 : 5e-3;
  }
  void begin(const Row& row) override { row_ = &row; }
  void hold(Lane, double) override {}
  void wait(Lane, std::uint32_t) override {}
  void acquire(Lane, std::uint32_t) override {}
  void release(Lane, std::uint32_t) override {}
  void run(std::uint32_t) override {}
  void pace(std::uint32_t) override {}
  [[nodiscard]] Executed finish() override {
    // Slow at first, then in no order.
    constexpr std::array<double, 6> kStretch{9, 1.2, 1.5, 1.1, 1.4, 1.3};
    const double stretch = kStretch.at(runs++);
    Executed executed;
    for (const Action& action : row_->actions) {
      executed.start.push_back(stretch * action.start);
      executed.end.push_back(stretch * action.end);
    }
    return executed;
  }

  int asked = 0;
  std::size_t runs = 0;

 private:
  const Row* row_ = nullptr;
};

TEST(Retime, SimulatesWithWhatTheDeviceTakesForEachKindOfWorkOnce) {
  Replayed replayed = simulated("zb-h1");
  Timed device;
  retime(replayed.simulation, {}, device);
  EXPECT_EQ(device.asked, 3);  // F, B and W: all stages are alike
  for (const DeviceReport& report : replayed.simulation.report.devices) {
    EXPECT_NEAR(report.busy.value(), 12 * (4e-3 + 5e-3 + 5e-3), 1e-12);
  }
  EXPECT_TRUE(wrong(disturbed(replayed.row(1), {})).empty());
}

TEST(Runs, CountByTheMedianTotalWithoutTheFirst) {
  Timed device;
  const Comparison comparison =
      replay_and_compare(simulated("1f1b").row(0), Arrivals::kSimulated, 5, device);
  EXPECT_EQ(device.runs, 6U);
  EXPECT_NEAR(comparison.find("total")->error(), 0.3, 1e-9);
}

TEST(Slice, IsTheModelsLayerOrSaysWhyNot) {
  const auto slice = [](const std::string& model, const std::string& more) {
    const Scenario scenario = read_scenario(YamlSource(
        "test", "schedule: 1f1b\nmodel: " + model +
                    "\ncluster: dgx-h100\nparallel: {pipeline_model_parallel_size: 4}\n"
                    "batch: {num_microbatches: 8, micro_batch_size: 2, seq_length: 4096}\n" +
                    more));
    return slice_of(prepare_first(scenario));
  };
  const LayerSlice found = slice("llama3-8b", "");
  const LayerSlice known{layer_named("llama3-8b")};
  EXPECT_EQ(found.tokens(), 8192);
  EXPECT_EQ(found.qkv_out(), known.qkv_out());
  EXPECT_EQ(found.first_out(), known.first_out());
  EXPECT_EQ(found.shape.vocabulary, known.shape.vocabulary);
  EXPECT_TRUE(found.shape.gated && found.shape.rms_norm && !found.shape.dropout);
  EXPECT_THROW((void)slice("mixtral-8x7b", ""), InfeasibleError);
  const Replayed given = simulated("1f1b");
  EXPECT_THROW((void)slice_of(given.made), InfeasibleError);
}

TEST(ReplayDocument, HasEveryLineWithUnitsAndTheCard) {
  ReplayDocument document{"s.yaml", {{"device", "a card"}, {"date", "2026-01-01"}}, {}};
  Comparison comparison{"gis, \"h\"", 1, Arrivals::kAtStart, {{"busy", "s", 0.5, 0.51}}};
  document.comparisons.push_back(comparison);
  std::ostringstream csv;
  write_csv(document, csv);
  EXPECT_EQ(csv.str(),
            "# pipesim-replay/1\n# scenario: s.yaml\n# device: a card\n# date: 2026-01-01\n"
            "schedule,device,arrivals,quantity,unit,simulated,measured,error\n"
            "\"gis, \"\"h\"\"\",1,at-start,busy,s,0.5,0.51,0.02\n");
  std::ostringstream yaml;
  write_yaml(document, yaml);
  EXPECT_EQ(yaml.str(),
            "schema: pipesim-replay/1\nscenario: \"s.yaml\"\nmeasured:\n  device: \"a card\"\n"
            "  date: \"2026-01-01\"\nrows:\n  - schedule: \"gis, \\\"h\\\"\"\n    device: 1\n"
            "    arrivals: at-start\n    lines:\n"
            "      - {quantity: busy, unit: s, simulated: 0.5, measured: 0.51, error: 0.02}\n");
  EXPECT_NE(described(document).find("+2.00%"), std::string::npos);
}

class ReplayCommand : public pipesim::testing::Command {
 protected:
  [[nodiscard]] pipesim::testing::Outcome replay(const std::string& arguments) {
    write("s.yaml", kScenario);
    return shell("$(dirname " PIPESIM_EXECUTABLE ")/pipesim-replay " + arguments);
  }
};

TEST_F(ReplayCommand, WritesTheComparisonOfEveryRow) {
  const auto outcome = replay("s.yaml schedule=zb-h1 --dry-run --arrivals both --device 2 -o out");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("zb-h1, device 2, arrivals at-start"), std::string::npos)
      << outcome.output;
  const std::string csv = read("out/replay.csv");
  EXPECT_NE(csv.find("\nzb-h1,2,simulated,mean W,s,0.007,0.007,0\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("# device: none: simulated times\n"), std::string::npos) << csv;
  EXPECT_EQ(read("out/replay.yaml").find("date"), std::string::npos);
}

TEST_F(ReplayCommand, ReplaysAllRowsBesideEachOther) {
  const auto outcome = replay("s.yaml schedule=zb-v --dry-run --arrivals sent -o out");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("zb-v, device 3, arrivals sent"), std::string::npos)
      << outcome.output;
  EXPECT_NE(read("out/replay.csv").find("\nzb-v,2,sent,mean message,s,0.001,0.001,0\n"),
            std::string::npos);
  const auto one_row = replay("s.yaml --dry-run --arrivals sent --device 1 -o out2");
  EXPECT_EQ(one_row.code, 2) << one_row.output;
  EXPECT_NE(one_row.output.find("--device"), std::string::npos) << one_row.output;
}

TEST_F(ReplayCommand, SaysThatItHasNoDeviceAndWhatIsWrongWithItsInput) {
  const auto refused = replay("s.yaml -o out");
  EXPECT_EQ(refused.code, 1) << refused.output;
  EXPECT_NE(refused.output.find("--dry-run"), std::string::npos) << refused.output;
  const auto wrong = replay("s.yaml schedule=zb-h9 --dry-run -o out");
  EXPECT_EQ(wrong.code, 2) << wrong.output;
  EXPECT_NE(wrong.output.find("zb-h1"), std::string::npos) << wrong.output;
  EXPECT_EQ(replay("s.yaml cost --dry-run -o out").code, 2);
  const auto beyond = replay("s.yaml --device 4 --dry-run -o out");
  EXPECT_EQ(beyond.code, 2) << beyond.output;
  EXPECT_NE(beyond.output.find("expected a device from 0 to 3"), std::string::npos);
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace pipesim::calibration::replay_test
