// `pipesim sweep` as its user meets it.
#include "tests/app/command.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/sanitized.h"
#include "tests/sweep/files.h"

namespace pipesim::command_test {
namespace {

namespace fs = std::filesystem;
using testing::kSmallSweep;
using testing::Outcome;

// 432 points that take a second or two.
const std::string kLongerSweep =
    "schedule: [1f1b, zb-v, v-half]\n"
    "parallel: {pipeline_model_parallel_size: 8}\nbatch: {num_microbatches: 128}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}\n"
    "sweep:\n  grid:\n    parallel.pipeline_model_parallel_size: [8, 16, 24]\n"
    "    cost.forward: {from: 5 ms, to: 28.5 ms, step: 0.5 ms}\n";

class SweepCommand : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write("s.yaml", kSmallSweep);
  }
};

TEST_F(SweepCommand, LeavesTablesStoreAndFile) {
  const Outcome outcome = run("sweep s.yaml -o new/out --json all.json");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("12 points: 10 results, 2 failed"), std::string::npos)
      << outcome.output;
  EXPECT_TRUE(read("new/out/results.csv")
                  .starts_with("point,cost.forward,batch.num_microbatches,schedule,options,"
                               "recompute,offload,memory_limit,gpus,iteration_seconds,"));
  EXPECT_TRUE(fs::exists(folder_ / "new/out/results.sqlite"));
  EXPECT_EQ(read("new/out/sweep.yaml"), kSmallSweep);
  EXPECT_NE(read("all.json").find("\"failed\""), std::string::npos);
}

TEST_F(SweepCommand, IsTheSameBytesForAnyNumberOfProcesses) {
  EXPECT_EQ(run("sweep s.yaml -o one -j 1 --json one.json").code, 0);
  EXPECT_EQ(run("sweep s.yaml -o five -j 5 --json five.json").code, 0);
  for (const char* name : {"results.csv", "failed.csv"}) {
    EXPECT_EQ(read(std::string("one/") + name), read(std::string("five/") + name));
  }
  EXPECT_EQ(read("one.json"), read("five.json"));
}

// The tables of a part are called so, until the whole replaces them.
TEST_F(SweepCommand, StopsOnCtrlCAndTheSameCommandGoesOn) {
  write("s.yaml", kLongerSweep);
  EXPECT_EQ(run("sweep s.yaml -o whole --json whole.json").code, 0);
  const std::string command =
      std::string(PIPESIM_EXECUTABLE) + " sweep s.yaml -o out -j 1 --json out.json";
  // Signals are caught once there is a store, however long a busy machine takes to get there.
  const Outcome stopped = shell(command +
                                " & while [ ! -e out/results.sqlite ] && kill -0 $!; do "
                                "sleep 0.01; done; sleep 0.3; kill -INT $!; wait $!");
  // Or it was done before.
  EXPECT_TRUE(stopped.code == 130 || stopped.code == 0) << stopped.code << stopped.output;
  if (stopped.code == 130) {
    EXPECT_NE(stopped.output.find("the same command goes on from there"), std::string::npos)
        << stopped.output;
    EXPECT_FALSE(fs::exists(folder_ / "out/results.csv"));
    const std::string stored = stopped.output.substr(stopped.output.find("; ") + 2);
    const std::string part = read("out/results.partial.csv");
    const auto document = nlohmann::json::parse(read("out.json"));
    EXPECT_EQ(std::ranges::count(part, '\n'), 1 + std::stol(stored)) << stopped.output;
    EXPECT_LT(std::stol(stored), 432);
    EXPECT_EQ(document["results"].size(), std::stoul(stored));
    EXPECT_TRUE(document["sweep"]["stopped"].get<bool>());
    // A row is what it is in the whole.
    const std::string whole = read("whole/results.csv");
    std::istringstream lines(part);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_NE(whole.find(line + '\n'), std::string::npos) << line;
    }
    EXPECT_EQ(run("report out -o part.html").code, 0);
    EXPECT_NE(read("part.html").find("\"stopped\":true"), std::string::npos);
  }
  EXPECT_EQ(shell(command).code, 0);
  for (const char* table : {"results.csv", "failed.csv"}) {
    EXPECT_EQ(read(std::string("out/") + table), read(std::string("whole/") + table));
  }
  EXPECT_EQ(read("out.json"), read("whole.json"));
  EXPECT_FALSE(fs::exists(folder_ / "out/results.partial.csv"));
  EXPECT_FALSE(fs::exists(folder_ / "out/failed.partial.csv"));
}

// Each of its points is of what the file said when the sweep began, or there is none.
TEST_F(SweepCommand, EndsWithAnErrorWhereAnInputChanges) {
  const std::string scenario =
      "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 64}\n"
      "cost: {kind: given, per: stage, forward: 10 ms, backward_input: 10 ms, backward_weight: 9 "
      "ms, transfer: 2 ms}\n";
  write("a.yaml", "schedule: 1f1b\n" + scenario);
  ASSERT_EQ(run("export a.yaml -o a.csv").code, 0);
  ASSERT_EQ(run("export a.yaml schedule=gpipe -o b.csv").code, 0);
  write("s.yaml",
        "schedule: {csv: x.csv}\n" + scenario +
            fmt::format(
                "sweep: {{draw: {{seed: 1, count: {}, keys: {{cost.forward: {{from: 10 ms, to: "
                "11 ms}}}}}}}}\n",
                testing::rounds(20000)));
  const Outcome changed = shell(
      "cp a.csv x.csv; timeout 60 " PIPESIM_EXECUTABLE
      " sweep s.yaml -j 1 -o out & for i in $(seq 1000); do [ -e out/results.sqlite ] && break; "
      "sleep 0.01; done; cp b.csv new; mv new x.csv; wait $!");
  EXPECT_EQ(changed.code, 1) << changed.output;
  EXPECT_NE(changed.output.find("'x.csv' has changed since the sweep began"), std::string::npos)
      << changed.output;
  EXPECT_EQ(run("sweep s.yaml -o out").code, 2) << "a store of other results";
  EXPECT_EQ(shell("cp a.csv x.csv; " PIPESIM_EXECUTABLE " sweep s.yaml -o out").code, 0);
  EXPECT_EQ(run("sweep s.yaml -o again").code, 0);
  EXPECT_EQ(read("out/results.csv"), read("again/results.csv"));
}

TEST_F(SweepCommand, ABadKeyIsOneErrorAndWritesNothing) {
  std::string text = kSmallSweep;
  text.replace(text.find("cost.forward"), 12, "cost.forwart");
  write("s.yaml", text);
  const Outcome outcome = run("sweep s.yaml -o out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.output.starts_with("pipesim: s.yaml:7:")) << outcome.output;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(SweepCommand, RefusesTheStoreOfAnotherSweepAndLeavesIt) {
  EXPECT_EQ(run("sweep s.yaml -o out").code, 0);
  const std::string store = read("out/results.sqlite");
  const std::string table = read("out/results.csv");
  const Outcome outcome = run("sweep s.yaml -o out cost.backward_weight='1 ms'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("results of another sweep"), std::string::npos) << outcome.output;
  EXPECT_EQ(read("out/results.sqlite"), store);
  EXPECT_EQ(read("out/results.csv"), table);
}

TEST_F(SweepCommand, SaysWhereItCannotWrite) {
  write("file", "");
  const Outcome outcome = run("sweep s.yaml -o file/out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("cannot write 'file/out'"), std::string::npos) << outcome.output;
}

TEST_F(SweepCommand, IsOneWhenNoPointHasAResult) {
  write("s.yaml",
        "schedule: interleaved-1f1b\nparallel: {pipeline_model_parallel_size: 2, "
        "virtual_pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\n"
        "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
        "sweep: {grid: {batch.num_microbatches: [3, 5]}}\n");
  EXPECT_EQ(run("sweep s.yaml -o out").code, 1);
  EXPECT_NE(read("out/failed.csv").find("nearest shape"), std::string::npos);
}

TEST_F(SweepCommand, SpreadsOverRanksOfMpi) {
  if (!fs::exists(fs::path(PIPESIM_EXECUTABLE).parent_path() / "../lib/pipesim/mpi.so") ||
      shell("command -v mpirun").code != 0) {
    GTEST_SKIP() << "built without MPI, or no mpirun (libopenmpi-dev, openmpi-bin)";
  }
  EXPECT_EQ(run("sweep s.yaml -o alone").code, 0);
  // Open MPI frees some of its own memory only after unloading what it came from: a sanitizer could
  // not tell whose it is.
  const std::string mpirun =
      "export ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; mpirun --oversubscribe -n 3 ";
  const std::string ranks = mpirun + PIPESIM_EXECUTABLE;
  const Outcome outcome = shell(ranks + " sweep s.yaml -o ranks");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(read("ranks/results.csv"), read("alone/results.csv"));
  EXPECT_EQ(read("ranks/failed.csv"), read("alone/failed.csv"));
  // One of three says what is wrong, also when the others meet the mistake before it.
  const Outcome bad = shell(mpirun + "sh -c '[ $OMPI_COMM_WORLD_RANK != 0 ] || sleep 1; " +
                            PIPESIM_EXECUTABLE + " sweep s.yaml -o other cost.forward=3'");
  const std::string message = "is swept";
  EXPECT_NE(bad.output.find(message), std::string::npos) << bad.output;
  EXPECT_EQ(bad.output.find(message), bad.output.rfind(message)) << bad.output;
  // Nor do they mix what two machines have under one name.
  const Outcome mixed = shell(mpirun +
                              "sh -c 'cp s.yaml $OMPI_COMM_WORLD_RANK.yaml; [ "
                              "$OMPI_COMM_WORLD_RANK != 1 ] || sed -i \"s/10 ms/40 ms/\" "
                              "1.yaml; " +
                              PIPESIM_EXECUTABLE + " sweep $OMPI_COMM_WORLD_RANK.yaml -o mixed'");
  EXPECT_NE(mixed.output.find("rank 1 has read other files than rank 0"), std::string::npos)
      << mixed.output;
  EXPECT_FALSE(fs::exists(folder_ / "mixed/results.sqlite"));
}

TEST_F(SweepCommand, SaysWhenItIsLaunchedAsRanksAndHasNoMpi) {
  fs::create_directories(folder_ / "bin");
  fs::copy_file(PIPESIM_EXECUTABLE, folder_ / "bin/pipesim");
  const Outcome outcome =
      shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 bin/pipesim sweep s.yaml -o out");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find("built without MPI"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace pipesim::command_test
