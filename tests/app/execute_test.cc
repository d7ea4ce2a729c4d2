#include <filesystem>
#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/app/command.h"

namespace pipesim::testing::execute_test {

namespace fs = std::filesystem;

namespace {

class ExecuteCommand : public Command {
 protected:
  const std::string small_ =
      "execute " + quickstart_ +
      " parallel.pipeline_model_parallel_size=2 batch.num_microbatches=4 --pass-ms ";
};

TEST_F(ExecuteCommand, WritesWhatWasMeasuredBesideWhatWasSimulated) {
  const Outcome outcome = run(small_ + "1 schedule=zb-h1 --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json["schedule"], "zb-h1");
  EXPECT_EQ(json["devices"], 2);
  EXPECT_EQ(json["messages"], "asynchronous");
  EXPECT_EQ(json["same_order"], true);
  EXPECT_EQ(json["same_results"], true);
  EXPECT_GT(json["simulated_seconds"], 0.01);
  EXPECT_EQ(json["ratio"],
            json["measured_seconds"].get<double>() / json["simulated_seconds"].get<double>());
}

TEST_F(ExecuteCommand, OfSeveralSchedulesWritesAList) {
  const Outcome outcome = run(small_ + "1 'schedule=[gpipe, 1f1b]' --json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("not a GPU"), std::string::npos) << outcome.output;
  const auto json = nlohmann::json::parse(read("out.json"));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1]["schedule"], "1f1b");
}

TEST_F(ExecuteCommand, EndsWithItsProcessesWhenInterrupted) {
  // Shells let a background job ignore SIGINT; a process that blocks the signal sees it all the
  // same.
  const Outcome outcome = shell(std::string(PIPESIM_EXECUTABLE) + " " + small_ +
                                "3000 schedule=1f1b & pid=$!; sleep 0.7; kill -TERM $pid; "
                                "children=$(pgrep -P $pid); wait $pid; echo code $?; "
                                "test -z \"$children\" || sleep 0.1; pgrep -P $pid");
  EXPECT_NE(outcome.output.find("interrupted; all processes have ended"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("code 130"), std::string::npos) << outcome.output;
}

TEST_F(ExecuteCommand, RunsAsRanksOfMpi) {
  if (!fs::exists(fs::path(PIPESIM_EXECUTABLE).parent_path() / "../lib/pipesim/mpi.so") ||
      shell("command -v mpirun").code != 0) {
    GTEST_SKIP() << "built without MPI, or no mpirun (libopenmpi-dev, openmpi-bin)";
  }
  const std::string ranks =
      "export ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; timeout 60 mpirun --oversubscribe -n 2 " +
      std::string(PIPESIM_EXECUTABLE) + " ";
  const Outcome outcome = shell(ranks + small_ + "1 'schedule=[1f1b, zb-h1]'");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const Outcome three = shell(ranks + "execute " + quickstart_ + " --pass-ms 1 schedule=1f1b");
  EXPECT_NE(three.output.find("2 ranks were started for 8 devices"), std::string::npos)
      << three.output;
}

// Measure, fit, simulate, execute: gates all but times, whose ratio is printed.
TEST_F(ExecuteCommand, ComputesAPipelineWhosePassesWereMeasuredBefore) {
  if (shell("ldconfig -p | grep -q libopenblas.so.0").code != 0) {
    GTEST_SKIP() << "there is no OpenBLAS (libopenblas0)";
  }
  const Outcome measured =
      run("calibrate --device cpu --hidden 128 --sequence 64 --repetitions 1 -o cpu");
  ASSERT_EQ(measured.code, 0) << measured.output;
  write("small.yaml",
        "schedule: zb-h1\n"
        "model: {num_layers: 4, hidden_size: 128, num_attention_heads: 2, ffn_hidden_size: 512,\n"
        "  vocab_size: 256, max_position_embeddings: 64, family: gpt, normalization: RMSNorm,\n"
        "  position_embedding_type: learned_absolute, add_bias_linear: false,\n"
        "  untie_embeddings_and_output_weights: true}\n"
        "parallel: {pipeline_model_parallel_size: 2}\n"
        "batch: {num_microbatches: 6, micro_batch_size: 2, seq_length: 64}\n"
        "cluster: cpu-cores\n"
        "cost: {kind: measured, file: cpu/calibration.yaml}\n");
  const Outcome outcome = run("execute --compute small.yaml --json small.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto json = nlohmann::json::parse(read("small.json"));
  EXPECT_EQ(json["same_order"], true);
  EXPECT_LT(json["gradient_error"], 1e-5);
  for (int device = 0; device < 2; ++device) {
    EXPECT_NEAR(json["peak_activation_bytes"][device].get<double>() /
                    json["simulated_peak_activation_bytes"][device].get<double>(),
                1, 0.03);
  }
  EXPECT_GT(json["simulated_seconds"], 0);
  std::cout << "measured / simulated: " << json["ratio"] << '\n';
}

}  // namespace
}  // namespace pipesim::testing::execute_test
