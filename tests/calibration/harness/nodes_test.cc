// A calibration of several nodes as its user meets it, on virtual ones: mpirun starts them on this
// machine (virtual_nodes.cc).
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "tests/app/command.h"
#include "validate/calibration/measurements_csv.h"

namespace pipesim::calibration {
namespace {

namespace fs = std::filesystem;
using pipesim::testing::Outcome;

constexpr double kCallUs = 20;  // of virtual_nodes.cc
constexpr double kLinkBytesPerUs = 5e4;

class Nodes : public pipesim::testing::Command {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(PIPESIM_EXECUTABLE).parent_path() / "../lib/pipesim/mpi.so") ||
        shell("command -v mpirun").code != 0) {
      GTEST_SKIP() << "built without MPI, or no mpirun (libopenmpi-dev, openmpi-bin)";
    }
  }

  [[nodiscard]] Outcome start(const std::string& setting, const std::string& processes,
                              const std::string& options = "-o out --gpu h100-sxm") const {
    return shell("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + setting +
                 "; timeout 60 mpirun --oversubscribe " + processes + " " + PIPESIM_EXECUTABLE +
                 " " + options);
  }

  // The job ended with one message, this one.
  void expect_message(const Outcome& outcome, const std::string& message) const {
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    const std::string speaker = "pipesim-calibrate: ";
    const auto found = outcome.output.find(speaker);
    ASSERT_NE(found, std::string::npos) << outcome.output;
    EXPECT_EQ(found, outcome.output.rfind(speaker)) << outcome.output;
    EXPECT_EQ(outcome.output.substr(found + speaker.size(), message.size()), message)
        << outcome.output;
    EXPECT_FALSE(fs::exists(folder_ / "out/measurements.csv"));
  }

  // "CALL [PEER]" to "COUNT of ELEMENTS", by communicator and rank.
  using Calls = std::map<std::string, std::string>;
  [[nodiscard]] Calls calls(const std::string& communicator, int rank) const {
    std::istringstream log(read("log." + communicator + "." + std::to_string(rank)));
    Calls found;
    for (std::string line; std::getline(log, line);) {
      const auto colon = line.find(": ");
      found[line.substr(0, colon)] = line.substr(colon + 2);
    }
    return found;
  }

  void expect_ranks_agree(const std::string& communicator, int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const Calls mine = calls(communicator, rank);
      ASSERT_FALSE(mine.empty()) << communicator << rank;
      for (const char* name : {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter"}) {
        EXPECT_EQ(mine.at(name), calls(communicator, 0).at(name)) << communicator << rank;
      }
      for (int other = 0; other < ranks; ++other) {
        EXPECT_EQ(mine.at("ncclSend " + std::to_string(other)),
                  calls(communicator, other).at("ncclRecv " + std::to_string(rank)))
            << communicator << ": " << rank << " to " << other;
      }
    }
  }
};

TEST_F(Nodes, AreMeasuredTogetherAndThenTheFirstAlone) {
  const Outcome outcome = start("VIRTUAL_GPUS=2 VIRTUAL_NCCL_LOG=log", "-n 2");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Measurements measured = read_measurements(path("out/measurements.csv"));
  std::map<std::string, std::size_t> curves;
  for (const Point& point : measured.points) {
    if (point.group != "network") continue;
    ++curves[point.parameter("ranks") + " on " + point.parameter("nodes")];
    const double ranks = std::stod(point.parameter("ranks"));
    double parts = 1;  // of the size that each rank sends
    if (point.name == "all_reduce") parts = 2 * (ranks - 1) / ranks;
    if (point.name == "all_gather" || point.name == "reduce_scatter" || point.name == "all_to_all")
      parts = (ranks - 1) / ranks;
    EXPECT_NEAR(point.time_us.median, kCallUs + parts * point.bytes / kLinkBytesPerUs, 0.01)
        << point.key();
  }
  const std::size_t points = 6 * make_plan(Mode::kQuick).message_bytes.size();
  EXPECT_EQ(curves, (std::map<std::string, std::size_t>{{"4 on 2", points}}));
  EXPECT_NE(measured.find("nccl/all_reduce/ranks=2/size=1048576"), nullptr);
  EXPECT_NE(measured.find("launch/kernel_to_kernel"), nullptr);

  expect_ranks_agree("a", 4);
  // Pipelines send to the same GPU of the next node, not to the next of their own.
  EXPECT_GT(std::stoi(calls("a", 0).at("ncclSend 2")), std::stoi(calls("a", 0).at("ncclSend 1")));
}

TEST_F(Nodes, AreNotMixedIntoTheCurvesOfOne) {
  const Outcome outcome = start("VIRTUAL_GPUS=2", "-n 2");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::istringstream residuals(read("out/residuals.csv"));
  std::set<std::string> curves;
  for (std::string line; std::getline(residuals, line);) {
    if (line.find(",network/") != std::string::npos) curves.insert(line.substr(0, line.find(',')));
  }
  EXPECT_FALSE(curves.empty());
  for (const std::string& curve : curves) {
    EXPECT_TRUE(curve.starts_with("network/") || curve.ends_with("_between_nodes")) << curve;
  }
}

TEST_F(Nodes, OfAGroupThatIsSmallerWaitForTheirTurn) {
  const Outcome outcome = start("VIRTUAL_NCCL_LOG=log", "-n 3");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  expect_ranks_agree("b", 2);
  EXPECT_FALSE(fs::exists(folder_ / "log.b.2"));
  const Measurements measured = read_measurements(path("out/measurements.csv"));
  EXPECT_NE(measured.find("network/all_gather/ranks=3/nodes=3/size=1048576"), nullptr);
  EXPECT_EQ(calls("a", 2).at("ncclAllReduce"), calls("a", 0).at("ncclAllReduce"));
}

TEST_F(Nodes, OfWhichOneHasNoGpuAreNotMeasured) {
  const std::string with = " -o out : -n 1 -x VIRTUAL_GPUS=0";
  expect_message(start("A=1", std::string("-n 1 ") + PIPESIM_EXECUTABLE + with, "-o out"),
                 "node node1: the CUDA driver reports no device");
}

TEST_F(Nodes, AreMachinesAndNotProcesses) {
  expect_message(start("VIRTUAL_MACHINE=both", "-n 2"), "node both has 2 processes; start one");
}

TEST_F(Nodes, EndTogetherWhenTheFirstFails) {
  expect_message(start("VIRTUAL_NCCL_FAIL=0:ncclAllReduce", "-n 2"), "ncclAllReduce: virtual");
}

TEST_F(Nodes, EndTogetherWhenTheFirstCannotWrite) {
  write("file", "");
  const Outcome outcome = start("A=1", "-n 2", "-o file/out");
  expect_message(outcome, "filesystem error: cannot create directories");
}

TEST_F(Nodes, EndTogetherWhenAnotherFails) {
  expect_message(start("VIRTUAL_NCCL_FAIL=1:ncclCommInitRank", "-n 3"),
                 "node node1: ncclCommInitRank: virtual");
}

TEST_F(Nodes, EndTogetherWhenAllFail) {
  expect_message(start("VIRTUAL_NCCL_FAIL=all:ncclSend", "-n 3"), "ncclSend: virtual");
}

TEST_F(Nodes, EndTogetherWhenTheFirstWaitsForOneThatHasFailed) {
  expect_message(
      start("VIRTUAL_NCCL_FAIL=1:ncclAllReduce VIRTUAL_NCCL_STALL=0:ncclAllReduce", "-n 2"),
      "node node1: ncclAllReduce: virtual");
}

TEST_F(Nodes, SayOnceWhatIsWrongWithTheCommand) {
  const Outcome outcome = start("A=1", "-n 2", "-o out --mode fast");
  EXPECT_EQ(outcome.code, 2);
  const std::string message = "fast not in";
  EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find(message), outcome.output.rfind(message)) << outcome.output;
}

}  // namespace
}  // namespace pipesim::calibration
