// The scripts that run PyTorch, on Debian's PyTorch without a GPU.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sstream>
#include <vector>

#include "tests/app/command.h"

namespace pipesim::testing::torch_test {
namespace {

const std::string kTools = std::string(PIPESIM_SOURCE_DIR) + "/tools/";
const std::string kFit = "$(dirname " + std::string(PIPESIM_EXECUTABLE) + ")/pipesim-fit ";

// The curve is fitted, or refused for its error or spread: a busy machine's points may follow no
// curve.
void expect_judged(const std::string& fit, const std::string& curve) {
  const std::string refused = curve + ": not fitted: ";
  EXPECT_TRUE(('\n' + fit).find('\n' + curve + '\n') != std::string::npos ||
              fit.find(refused + "the best fit is off by ") != std::string::npos ||
              (curve == "jitter" && fit.find(refused + "passes spread by ") != std::string::npos))
      << curve << '\n'
      << fit;
}

class Torch : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (shell("/usr/bin/python3 -c 'import torch'").code != 0) {
      GTEST_SKIP() << "there is no PyTorch (python3-torch)";
    }
  }
  // Starts ranks like torchrun, which Debian's cannot.
  [[nodiscard]] Outcome ranks(int count, int of_a_node, const std::string& arguments,
                              const std::string& environment = "") const {
    return shell(
        fmt::format("export {4} WORLD_SIZE={0} LOCAL_WORLD_SIZE={1} MASTER_ADDR=127.0.0.1 "
                    "MASTER_PORT=$((20000 + $$ % 9000)); "
                    "for rank in $(seq 0 $(({0} - 1))); do RANK=$rank LOCAL_RANK=$rank "
                    "/usr/bin/python3 {2}calibrate_torch.py --dry {3} & done; wait",
                    count, of_a_node, kTools, arguments, environment));
  }
  [[nodiscard]] Outcome two_ranks(const std::string& arguments, int of_a_node = 2) const {
    return ranks(2, of_a_node, arguments);
  }
};

TEST_F(Command, StagesReadADriverAndNcclsLog) {
  const Outcome outcome =
      shell("/usr/bin/python3 " + std::string(PIPESIM_SOURCE_DIR) + "/tests/torch/stages.py");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_F(Torch, CalibratesTwoRanksAndFitsWhatTheyMeasured) {
  const Outcome outcome = two_ranks("--only facts,matmuls,host,spread,collectives -o out");
  const std::string csv = read("out/measurements.csv");
  EXPECT_NE(csv.find("\n# device: cpu core"), std::string::npos) << outcome.output;
  EXPECT_NE(csv.find("\nmatmul,fprop,dtype=bf16 tokens=64 in=128"), std::string::npos);
  EXPECT_NE(csv.find("\nspread,W,layer=tiny "), std::string::npos) << outcome.output;
  EXPECT_NE(csv.find("\nnccl,send_recv,ranks=2 size=1024"), std::string::npos) << outcome.output;
  // A refused measurement is listed, and the rest goes on.
  EXPECT_NE(csv.find("# not_measured: nccl/reduce_scatter/ranks=2"), std::string::npos);
  const std::string fit = shell(kFit + "out --gpu cpu-core").output;
  for (const char* curve : {"matmul", "host_operation", "jitter", "all_reduce", "all_gather",
                            "all_to_all", "send_recv"}) {
    expect_judged(fit, curve);
  }
}

TEST_F(Torch, CalibratesTwoNodesAndFitsTheLinkBetweenThem) {
  const Outcome outcome = two_ranks("--only facts,collectives -o out", 1);
  const std::string csv = read("out/measurements.csv");
  EXPECT_NE(csv.find("\nnetwork,exchange,ranks=2 nodes=2 size=1024"), std::string::npos)
      << outcome.output;
  const std::string fit = shell(kFit + "out --gpu cpu-core").output;
  for (const char* curve : {"send_recv", "all_reduce", "all_gather", "all_to_all"}) {
    expect_judged(fit, std::string(curve) + "_between_nodes");
  }
}

TEST_F(Torch, MeasuresFourRanksWhereEveryRankOfAGroupMustCall) {
  const std::string strict =
      "PYTHONPATH=" + std::string(PIPESIM_SOURCE_DIR) + "/tests/torch/strict_groups";
  const Outcome outcome = ranks(4, 4, "--only collectives -o out", strict);
  const std::string csv = read("out/measurements.csv");
  EXPECT_EQ(csv.find("the rest of collectives"), std::string::npos) << csv;
  for (const char* name : {"send_recv", "exchange", "all_reduce", "all_gather", "all_to_all"}) {
    for (const char* count : {"4", "2"}) {
      EXPECT_NE(csv.find(fmt::format("\nnccl,{},ranks={} size=1048576,", name, count)),
                std::string::npos)
          << name << ' ' << count << outcome.output;
    }
  }
  EXPECT_LT(csv.find("\nnccl,send_recv,ranks=4"), csv.find("\nnccl,send_recv,ranks=2"));
}

TEST_F(Torch, MeasuresPowerAndExpertsWhereAskedTo) {
  const Outcome outcome = shell("/usr/bin/python3 " + kTools +
                                "calibrate_torch.py --dry --only host,power,grouped -o out");
  const std::string csv = read("out/measurements.csv");
  for (const char* row :
       {"launch,host_launch,", "host,F,mode=eager layers=2 layer=llama ",
        "host,B,mode=eager layers=2 layer=llama ", "pauses,layer,layer=tiny idle=0 ",
        "pauses,layer,layer=tiny idle=0.25", "pauses,after_rest,layer=tiny rest_ms=10 run=0",
        "grouped,permute,model=tiny",
        "grouped,first,model=tiny experts=4 rows=128 fullest=1.2 way=loop",
        "grouped,second,model=tiny experts=4 rows=128 fullest=1.0 way=dense"}) {
    EXPECT_NE(csv.find(std::string("\n") + row), std::string::npos) << row << outcome.output;
  }
  EXPECT_NE(csv.find("# not_measured: grouped/way=grouped: there is no GPU"), std::string::npos);
  EXPECT_EQ(csv.find("the rest of"), std::string::npos) << csv;
}

TEST_F(Torch, RefusesAStageThatIsNotThere) {
  const Outcome outcome =
      shell("/usr/bin/python3 " + kTools + "calibrate_torch.py --only matmul -o out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("there is no stage 'matmul'"), std::string::npos) << outcome.output;
}

// The rows of matmuls and kernels with seconds that a curve meets, 10 GFLOP/s or 10 GB/s, so that
// they are fitted however busy the machine was.
std::string on_curves(const std::string& csv) {
  constexpr size_t kFlops = 3;
  constexpr size_t kBytes = 4;
  constexpr size_t kSeconds = 5;  // median, p10, p90 and least
  std::istringstream lines(csv);
  std::string text;
  for (std::string line; std::getline(lines, line); text += line + '\n') {
    if (!line.starts_with("matmul,") && !line.starts_with("kernel,")) continue;
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    const double work = std::stod(fields.at(kFlops)) + std::stod(fields.at(kBytes));
    for (size_t i = 0; i < 4; ++i) {
      fields.at(kSeconds + i) = fmt::format("{:.6g}", 10 + work / 1e4);
    }
    // Empty fields at the end come back too.
    const auto commas = std::ranges::count(line, ',');
    line = fmt::format("{}", fmt::join(fields, ","));
    line.append(static_cast<size_t>(commas - std::ranges::count(line, ',')), ',');
  }
  return text;
}

TEST_F(Torch, SetsItsLayersBesideTheCurves) {
  const Outcome measured = shell("/usr/bin/python3 " + kTools +
                                 "calibrate_torch.py --mode tiny --limit-factor 20 "
                                 "--only facts,matmuls,kernels,layers -o out");
  write("out/measurements.csv", on_curves(read("out/measurements.csv")));
  const Outcome fitted = shell(kFit + "out --gpu cpu-core");
  ASSERT_EQ(fitted.code, 0) << fitted.output << measured.output;
  for (const char* curve : {"matmul", "streaming"}) {
    EXPECT_EQ(fitted.output.find(std::string(curve) + ": not fitted"), std::string::npos)
        << fitted.output;
  }
  EXPECT_NE(fitted.output.find("layers, measured and as the curves above say\n"), std::string::npos)
      << fitted.output << measured.output;
  EXPECT_NE(fitted.output.find("  3 rows, error median "), std::string::npos) << fitted.output;
}

TEST_F(Torch, GoesOnAfterAStageThatHangs) {
  const Outcome outcome = shell(
      "/usr/bin/python3 " + kTools +
      "calibrate_torch.py --mode tiny --only facts,copies -o out; "
      "/usr/bin/python3 " +
      kTools + "calibrate_torch.py --mode tiny --limit-factor 0.001 --only attention,fp8 -o out");
  const std::string csv = read("out/measurements.csv");
  EXPECT_NE(csv.find("the rest of attention: it had not ended after"), std::string::npos) << csv;
  EXPECT_NE(csv.find("the rest of fp8: it had not ended after"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\ncopy,h2d,size=65536"), std::string::npos) << csv;  // of the run before
}

TEST_F(Torch, RunInTorchReadsWhatExportWritesAndNamesWhatAnOldTorchLacks) {
  ASSERT_EQ(run("export " + quickstart_ + " schedule=zb-h1 -o zb.csv").code, 0);
  const Outcome checked = shell("/usr/bin/python3 " + kTools + "run_in_torch.py zb.csv --check");
  EXPECT_NE(checked.output.find("8 ranks, 8 stages, 24 microbatches"), std::string::npos)
      << checked.output;
  const Outcome old =
      shell("RANK=0 WORLD_SIZE=8 /usr/bin/python3 " + kTools + "run_in_torch.py zb.csv");
  EXPECT_TRUE(old.code == 2 || old.output.find("2.6 or later") == std::string::npos) << old.output;
  write("bad.csv", "0F0,0G0\n");
  const Outcome bad = shell("/usr/bin/python3 " + kTools + "run_in_torch.py bad.csv --check");
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.output.find("bad.csv:1: cell 2 '0G0' is no action"), std::string::npos)
      << bad.output;
}

TEST_F(Torch, RunsALlamaPipelineWhosePassesImportSetsBesideItsSimulation) {
  if (shell("/usr/bin/python3 -c 'import torch, sys; v = torch.__version__.split(\".\"); "
            "sys.exit((int(v[0]), int(v[1])) < (2, 6))'")
          .code != 0) {
    GTEST_SKIP() << "PyTorch is older than 2.6, which has no such pipeline runtime";
  }
  ASSERT_EQ(run("export " + quickstart_ +
                " schedule=zb-h1 parallel.pipeline_model_parallel_size=4 batch.num_microbatches=8 "
                "-o zb.csv")
                .code,
            0);
  const Outcome ran = shell(
      "export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 9000)); "
      "for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank /usr/bin/python3 " +
      kTools +
      "run_in_torch.py zb.csv --model llama --width 128 --rows 64 --repeat 8 "
      "--passes passes.csv & done; wait");
  EXPECT_NE(ran.output.find("4 ranks, 4 stages, 8 microbatches"), std::string::npos) << ran.output;
  const Outcome imported = run("import passes.csv --format passes -o run.yaml");
  EXPECT_EQ(imported.code, 0) << imported.output;
  EXPECT_EQ(run("run run.yaml schedule=zb-h2").code, 0);
}

}  // namespace
}  // namespace pipesim::testing::torch_test
