#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/execution/walk.h"
#include "sim/interop/passes/write.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/measured_passes.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"

namespace pipesim::recorded_passes_test {
namespace {

constexpr double kMessage = 0.0008;
constexpr double kLaunch = 0.0005;

// Seconds of a pass as a real run has them: stages differ, the first forward and the last backward
// of an iteration take longer.
double seconds_of(int vs, const Pass& pass, int microbatches) {
  const double base = 0.050 + 0.002 * (vs % 3);
  if (pass.kind == PassKind::kF) return base + (pass.microbatch == 0 ? 0.004 : 0);
  if (pass.kind == PassKind::kW) return 0.4 * base;
  const bool last = static_cast<int>(pass.microbatch) + 1 == microbatches;
  return (pass.kind == PassKind::kB ? 0.9 : 1.3) * base + (last ? 0.003 : 0);
}

// Plays a program and keeps when each pass ran.
struct Player {
  using Value = double;
  static constexpr double kNotYet = -1;
  static constexpr double kNothing = 0;
  const Program& program;
  std::vector<std::vector<RecordedPass>> passes;

  double run(int device, const Pass& pass, double input, double gradient) {
    const int vs = program.placement().virtual_stage(device, pass.chunk);
    auto& mine = passes[static_cast<size_t>(device)];
    double start = mine.empty() ? 0 : mine.back().end + kLaunch;
    start = std::max({start, input, gradient});
    RecordedPass recorded{.kind = pass.kind,
                          .chunk = pass.chunk,
                          .stage = vs,
                          .microbatch = static_cast<int>(pass.microbatch),
                          .start = start};
    recorded.end = start + seconds_of(vs, pass, program.shape().microbatches);
    mine.push_back(recorded);
    return recorded.end;
  }
  [[nodiscard]] double deliver(double end, PassKind /*kind*/, int from, int to,
                               std::uint32_t /*unit*/) const {
    const Placement& place = program.placement();
    return to < 0 || place.device(from) == place.device(to) ? end : end + kMessage;
  }
};

Program plan(const std::string& name, int devices, int chunks, int microbatches) {
  const Schedule& schedule = *find_schedule(name);
  Problem problem;
  problem.shape = {devices, chunks, microbatches};
  problem.placement = schedule.place(devices, chunks);
  problem.stages.resize(static_cast<size_t>(devices * chunks));
  for (StageCost& stage : problem.stages) {
    stage.forward = stage.backward_input = stage.backward_weight = Seconds(1);
    stage.activation = Bytes(1);
  }
  return schedule.plan(for_planning(problem));
}

std::vector<std::vector<RecordedPass>> played(const Program& program) {
  Player player{program, {}};
  player.passes.resize(static_cast<size_t>(program.shape().devices));
  walk(program, player);
  return player.passes;
}

double ahead(int rank) { return 0.25 * rank; }  // of the clock of rank 0

// A folder within that of the test.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(testing::test_folder() / name) {
    std::filesystem::create_directories(path_);
  }
  void write(const std::string& name, const std::string& text) const {
    testing::write_file(path_ / name, text);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A rank's file as Primus writes it. `numbered`: with chunks and microbatches.
std::string primus_rank(const std::vector<RecordedPass>& passes, int rank, int iterations,
                        bool numbered, int stalled = -1) {
  std::string text = "{";
  for (int i = 1; i <= iterations; ++i) {
    text += fmt::format("{}\n \"{}\": {{\"total\": 1.0, \"memory\": {}", i > 1 ? "," : "", i,
                        40 - rank);
    for (const auto& [prefix, kind] :
         {std::pair("fwd", PassKind::kF), std::pair("bwd", PassKind::kBW)}) {
      std::string start, end, microbatch, chunk;
      for (const RecordedPass& pass : passes) {
        const bool stalls = i == stalled && pass.kind == PassKind::kF && pass.microbatch == 3;
        if (pass.kind != kind) continue;
        const char* comma = start.empty() ? "" : ", ";
        start += fmt::format("{}{}", comma, 1e3 * (pass.start + ahead(rank)));
        end += fmt::format("{}{}", comma, 1e3 * (pass.end + (stalls ? 0.04 : 0) + ahead(rank)));
        microbatch += fmt::format("{}{}", comma, pass.microbatch);
        chunk += fmt::format("{}{}", comma, pass.chunk);
      }
      text += fmt::format(", \"{0}_start\": [{1}], \"{0}_end\": [{2}]", prefix, start, end);
      if (numbered) {
        text += fmt::format(", \"{0}_minibatch\": [{1}], \"{0}_chunk\": [{2}]", prefix, microbatch,
                            chunk);
      }
    }
    text += "}";
  }
  return text + "\n}\n";
}

void write_primus(const Folder& folder, const Program& program, bool numbered, int stalled = -1) {
  const auto passes = played(program);
  folder.write("config.json", fmt::format("{{\"pp_size\": {}, \"vp_size\": {}, \"num_mbs\": {}}}",
                                          program.shape().devices, program.shape().chunks,
                                          program.shape().microbatches));
  for (int rank = 0; rank < program.shape().devices; ++rank) {
    folder.write(fmt::format("pp_rank_{}.json", rank),
                 primus_rank(passes[static_cast<size_t>(rank)], rank, 8, numbered,
                             rank == 1 ? stalled : -1));
  }
}

RecordedRun read_run(const std::string& path, const std::string& schedule = "") {
  return recorded_run(read_passes(path, {}), schedule, {});
}

TEST(RecordedPasses, OfPrimusGiveStagesClocksAndTheRunItself) {
  const Folder folder("primus");
  const Program program = plan("1f1b", 4, 1, 8);
  write_primus(folder, program, false, 6);
  const RecordedRun run = read_run(folder.path());
  EXPECT_EQ(run.schedule, "1f1b");
  EXPECT_EQ(run.warm_up, 3);
  EXPECT_EQ(run.iterations.size(), 5U);
  EXPECT_EQ(run.recording.memory, (std::vector<double>{40, 39, 38, 37}));
  const RunMeasures measured = measure(run);
  ASSERT_EQ(measured.stages.size(), 4U);
  for (int stage = 0; stage < 4; ++stage) {
    const auto& kinds = measured.stages[static_cast<size_t>(stage)];
    EXPECT_NEAR(kinds[PassKind::kF].mean, 0.050 + 0.002 * (stage % 3), 1e-9);
    EXPECT_NEAR(kinds[PassKind::kBW].mean, 1.3 * (0.050 + 0.002 * (stage % 3)), 1e-9);
    EXPECT_NEAR(kinds[PassKind::kF].spread, 0, 1e-9);
    EXPECT_NEAR(measured.ranks[static_cast<size_t>(stage)].clock, ahead(stage), 1e-9);
  }
  EXPECT_NEAR(measured.stages[0][PassKind::kF].launch, kLaunch, 1e-9);
  EXPECT_NEAR(measured.message, kMessage, 1e-9);
  EXPECT_NEAR(measured.opening, 4 * 0.004, 1e-9);
  EXPECT_NEAR(measured.closing, 4 * 0.003, 1e-9);
  ASSERT_EQ(measured.stalls.size(), 1U);
  EXPECT_EQ(measured.stalls[0].iteration, 6);
  EXPECT_EQ(measured.stalls[0].rank, 1);
  EXPECT_EQ(measured.ranks[1].stalled, 1U);
  const auto passes = played(program);
  const double makespan = passes[0].back().end - passes[0].front().start;
  EXPECT_NEAR(measured.median_seconds, makespan, 1e-9);
  EXPECT_NEAR(measured.simulated->by_pass, makespan, 1e-9);
  EXPECT_NEAR(measured.simulated->by_stage, makespan, 0.002 * makespan);
  EXPECT_LT(measured.simulated->passes, measured.simulated->with_messages);
}

TEST(RecordedPasses, WithoutNumbersAreCountedByTheNamedSchedule) {
  const Folder folder("primus-vpp");
  const Program program = plan("interleaved-1f1b", 4, 2, 8);
  write_primus(folder, program, false);
  const RecordedRun run = read_run(folder.path());
  EXPECT_EQ(run.schedule, "interleaved-1f1b");
  for (int device = 0; device < 4; ++device) {
    EXPECT_TRUE(std::ranges::equal(run.program.passes(device), program.passes(device)));
  }
  const RunMeasures measured = measure(run);
  EXPECT_NEAR(measured.simulated->by_pass, measured.median_seconds, 1e-9);
  EXPECT_THROW(read_run(folder.path(), "gpipe"), InputError);
  EXPECT_THROW(read_run(folder.path(), "no-such"), InputError);
}

TEST(RecordedPasses, KeepTheNumbersThatAreThere) {
  const Folder folder("primus-v");
  write_primus(folder, plan("1f1b-v", 4, 2, 8), true);
  EXPECT_EQ(read_run(folder.path(), "1f1b-v").schedule, "1f1b-v");
}

TEST(RecordedPasses, LeaveOutIterationsThatLackOne) {
  const Program program = plan("1f1b", 2, 1, 4);
  const auto passes = played(program);
  std::string text = "rank,iteration,kind,microbatch,start_ms,end_ms\n";
  for (int i = 0; i < 8; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      for (const RecordedPass& pass : passes[static_cast<size_t>(rank)]) {
        if (i == 5 && rank == 1 && pass.microbatch == 2 && pass.kind == PassKind::kF) continue;
        text += fmt::format("{},{},{},{},{},{}\n", rank, i, to_text(pass.kind), pass.microbatch,
                            1e3 * pass.start, 1e3 * pass.end);
      }
    }
  }
  const RecordedRun run = recorded_run(read_passes_csv("p.csv", text), "", {});
  EXPECT_EQ(run.left_out, std::vector<int>{5});
  EXPECT_EQ(run.iterations.size(), 4U);
  EXPECT_EQ(measure(run).ranks[1].missing, 1U);
}

std::string csv_error(const std::string& text) {
  try {
    (void)recorded_run(read_passes_csv("p.csv", text), "", {});
  } catch (const InputError& error) {
    return std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
  }
  return "";
}

TEST(RecordedPasses, OfACsvAreRefusedWithTheirPlace) {
  const std::string head = "rank,kind,start_ms,end_ms\n";
  EXPECT_EQ(csv_error("rank,kind,start_ms,ende_ms\n"),
            "p.csv:1:20: column 'ende_ms' is not known; did you mean 'end_ms'?");
  EXPECT_EQ(csv_error("rank,kind,start_ms\n"), "p.csv:1:1: column 'end_ms' is missing");
  EXPECT_EQ(csv_error(head + "0,F,0,1\n0,X,1,2\n"), "p.csv:3:3: expected F, B, W or BW, not 'X'");
  EXPECT_EQ(csv_error(head + "0,F,5,1\n"), "p.csv:2:7: the pass ends before it starts");
  EXPECT_EQ(csv_error(head + "99999999,F,0,1\n"),
            "p.csv:2:1: expected a number from 0 to 4095, not '99999999'");
  EXPECT_NE(csv_error("rank,kind,chunk,microbatch,start_ms,end_ms\n0,F,0,0,0,5\n0,BW,1,,5,25\n")
                .find("2 chunks of 1 ranks and 1 forwards are no interleaved-1f1b"),
            std::string::npos);
  EXPECT_NE(csv_error(head + "0,F,0,1\n").find("2 passes at least, but an iteration has 1"),
            std::string::npos);
}

TEST(RecordedPasses, OfMegatronsTasksAreDurationsAlone) {
  const Folder folder("tasks");
  std::string text = "{";
  for (int rank = 0; rank < 2; ++rank) {
    text += fmt::format("{}\"{}\": [", rank > 0 ? ", " : "", rank);
    const Program program = plan("1f1b", 2, 1, 4);
    bool first = true;
    for (const Pass& pass : program.passes(rank)) {
      const bool forward = pass.kind == PassKind::kF;
      text += fmt::format(
          "{}{{\"task_type\": \"{}\", \"pp_rank\": {}, \"microbatch_id\": {}, "
          "\"model_chunk_id\": 0, \"dependencies\": [], \"finished\": true, "
          "\"duration\": {}}}",
          first ? "" : ", ", forward ? "forward" : "backward", rank, pass.microbatch,
          forward ? 10.5 : 21);
      first = false;
    }
    text += "]";
  }
  folder.write("finished_tasks.json", text + "}");
  const RecordedRun run = read_run(folder.path());
  EXPECT_EQ(run.schedule, "1f1b");
  const RunMeasures measured = measure(run);
  EXPECT_NEAR(measured.stages[1][PassKind::kF].mean, 0.0105, 1e-12);
  EXPECT_NEAR(measured.stages[1][PassKind::kBW].mean, 0.021, 1e-12);
  EXPECT_FALSE(measured.simulated);
}

// A trace of one rank; ranges on the GPU, or on the CPU with a kernel each.
std::string trace_of(const std::vector<RecordedPass>& passes, int rank, bool gpu) {
  std::string text = fmt::format(
      "{{\"schemaVersion\": 1, \"distributedInfo\": {{\"rank\": {}}}, \"traceEvents\": [\n", rank);
  constexpr const char* kEvent =
      "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": 2, \"ts\": {}, "
      "\"dur\": {}, \"args\": {{\"correlation\": {}}}}},\n";
  for (int step = 0; step < 4; ++step) {
    const double begin = 1e6 * (1 + 10 * step + ahead(rank));
    text +=
        fmt::format(kEvent, "user_annotation", fmt::format("ProfilerStep#{}", step), begin, 9e6, 0);
    int id = 1000 * step;
    for (const RecordedPass& pass : passes) {
      const char letter = pass.kind == PassKind::kF ? 'F' : pass.kind == PassKind::kB ? 'I' : 'W';
      const std::string name = fmt::format("PP:{}{}{}", pass.stage, letter, pass.microbatch);
      const double at = begin + 1e6 * pass.start;
      const double length = 1e6 * pass.seconds();
      ++id;
      text += fmt::format(kEvent, gpu ? "gpu_user_annotation" : "user_annotation", name,
                          gpu ? at : at - 20, gpu ? length : 15, 0);
      if (gpu) continue;
      text += fmt::format(kEvent, "cuda_runtime", "cudaLaunchKernel", at - 10, 2, id);
      text += fmt::format(kEvent, "kernel", "gemm", at, length, id);
    }
  }
  return text + "{\"ph\": \"M\", \"name\": \"process_name\"}]}\n";
}

TEST(RecordedPasses, OfProfilersAreTheirNamedRanges) {
  const Program program = plan("zb-h1", 2, 1, 6);
  const auto passes = played(program);
  for (const bool gpu : {true, false}) {
    const Folder folder(gpu ? "kineto-gpu" : "kineto-cpu");
    for (int rank = 0; rank < 2; ++rank) {
      folder.write(fmt::format("trace{}.json", rank),
                   trace_of(passes[static_cast<size_t>(rank)], rank, gpu));
    }
    const RecordedRun run =
        recorded_run(read_kineto(folder.path(), {}, default_patterns()), "", {});
    EXPECT_EQ(run.schedule, "zb-h1");
    EXPECT_EQ(run.recording.notes.size(), gpu ? 0U : 1U);
    const RunMeasures measured = measure(run);
    EXPECT_NEAR(measured.stages[1][PassKind::kW].mean, 0.4 * 0.052, 1e-6);
    EXPECT_NEAR(measured.ranks[1].clock, ahead(1), 1e-6);
    EXPECT_NEAR(measured.simulated->by_pass, measured.median_seconds, 1e-5);
  }
}

TEST(RecordedPasses, OfProfilersTakeNamesThatAreGiven) {
  const Folder folder("kineto-names");
  folder.write("t.json",
               "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
               "\"my_fwd (0) of 0\", \"ts\": 0, \"dur\": 5}, {\"ph\": \"X\", \"cat\": "
               "\"user_annotation\", \"name\": \"my_bwd 0\", \"ts\": 6, \"dur\": 9}]}");
  std::vector<RangePattern> patterns{{PassKind::kF, "my_fwd ({microbatch}) of {stage}"}};
  EXPECT_THROW(read_kineto(folder.path(), {}, default_patterns()), InputError);
  patterns.push_back({PassKind::kBW, "my_bwd {microbatch}"});
  const Recording recording = read_kineto(folder.path(), {}, patterns);
  ASSERT_EQ(recording.iterations.size(), 1U);
  ASSERT_EQ(recording.iterations[0].ranks[0].size(), 2U);
  EXPECT_EQ(recording.iterations[0].ranks[0][0].stage, 0);
  EXPECT_NEAR(recording.iterations[0].ranks[0][1].seconds(), 9e-6, 1e-12);
}

// Numbers that follow each other part where the rest allows it.
TEST(RecordedPasses, OfProfilersTakeTheWholeName) {
  const Folder folder("kineto-whole");
  const auto named = [&folder](const std::string& name, const std::string& pattern) {
    folder.write("t.json", fmt::format("{{\"traceEvents\": [{{\"ph\": \"X\", \"cat\": "
                                       "\"user_annotation\", \"name\": \"{}\", \"ts\": 0, "
                                       "\"dur\": 5}}]}}",
                                       name));
    try {
      const Recording recording = read_kineto(folder.path(), {}, {{PassKind::kF, pattern}});
      const RecordedPass& pass = recording.iterations[0].ranks[0][0];
      return fmt::format("{} {}", pass.stage, pass.microbatch);
    } catch (const InputError&) {
      return std::string("none");
    }
  };
  EXPECT_EQ(named("f[3]+(12)*", "f[{stage}]+({microbatch})*"), "3 12");
  EXPECT_EQ(named("f1230", "f{stage}{microbatch}0"), "12 3");
  EXPECT_EQ(named("f12", "f{microbatch}"), "-1 12");
  EXPECT_EQ(named("f12 ", "f{microbatch}"), "none");
  EXPECT_EQ(named("f", "f{microbatch}"), "none");
  EXPECT_EQ(named("f12345678", "f{microbatch}"), "none");
  EXPECT_EQ(named("af12", "f{microbatch}"), "none");
}

// A scenario reads the measured times, and any schedule runs from it.
TEST(RecordedPasses, MakeAScenarioForAnySchedule) {
  const Folder folder("scenario");
  write_primus(folder, plan("1f1b", 4, 1, 8), false);
  const RecordedRun run = read_run(folder.path());
  const RunMeasures measured = measure(run);
  folder.write("run.passes.yaml", passes_text(run, measured));
  const std::string text = scenario_of_run(run, measured, "run.passes.yaml", "run.csv");
  const auto seconds = [&](const std::string& schedule) {
    YamlSource source(folder.path() + "/run.yaml", text,
                      {parse_override("schedule=" + schedule, {})});
    return simulate(prepare_first(read_scenario(source))).report.iteration.value();
  };
  EXPECT_NEAR(seconds("1f1b"), measured.simulated->by_stage, 1e-6);
  EXPECT_LT(seconds("zb-h1"), seconds("1f1b"));
  EXPECT_LT(seconds("interleaved-1f1b"), seconds("1f1b"));
  EXPECT_GT(seconds("gpipe"), 0);
}

TEST(MeasuredPasses, AreDividedAndPutTogether) {
  MeasuredPasses measured;
  for (const double forward : {3.0, 2.0, 2.0, 5.0}) {
    StageOfRun stage;
    stage.forward = Seconds(forward);
    stage.launch_forward = Seconds(0.25);
    measured.stages.push_back(stage);
  }
  const auto twice = on_stages(measured, 8);
  ASSERT_EQ(twice.size(), 8U);
  EXPECT_EQ(twice[0].forward, Seconds(2));  // 1 and the embedding's 1
  EXPECT_EQ(twice[1].forward, Seconds(1));
  EXPECT_EQ(twice[6].forward, Seconds(1));
  EXPECT_EQ(twice[7].forward, Seconds(4));
  EXPECT_EQ(twice[7].launch_forward, Seconds(0.25));
  const auto half = on_stages(measured, 2);
  EXPECT_EQ(half[0].forward, Seconds(5));
  EXPECT_EQ(half[1].forward, Seconds(7));
  EXPECT_THROW(on_stages(measured, 3), InfeasibleError);
}

TEST(MeasuredPasses, AreReadStrictly) {
  const auto read = [](const std::string& text, double share = 0.5) {
    return read_measured_passes(YamlSource("p.yaml", text), share);
  };
  const MeasuredPasses measured = read(
      "schema: pipesim-passes/1\nstages: [{forward: {mean: 2 ms}, backward: {mean: 5 ms, "
      "launch: 1 ms}}]\nmessage: 3 ms\n",
      0.4);
  EXPECT_NEAR(measured.stages[0].backward_weight.value(), 0.002, 1e-12);
  EXPECT_NEAR(measured.stages[0].backward_input.value(), 0.003, 1e-12);
  EXPECT_EQ(measured.message, Seconds(0.003));
  EXPECT_THROW(read("schema: pipesim-passes/2\nstages: []\n"), InputError);
  EXPECT_THROW(read("schema: pipesim-passes/1\nstages: []\n"), InputError);
  EXPECT_THROW(read("schema: pipesim-passes/1\nstages: [{forward: {mean: 0}}]\n"), InputError);
}

}  // namespace
}  // namespace pipesim::recorded_passes_test
