// Calibration files: what they replace, where they are wrong, and that the seconds follow.
#include "sim/read/calibration.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"

namespace pipesim::calibration_test {
namespace {

const std::string kExample =
    std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/calibration/example.yaml";

constexpr const char* kBase = R"(
model: llama3-8b
cluster: dgx-h100
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}
)";

Scenario read(const std::string& cost) {
  return read_scenario(YamlSource("test", kBase, {{"cost", cost, {}}}));
}
Scenario read_example() { return read("{kind: measured, file: " + kExample + "}"); }

std::string refusal_of(const std::string& cost) {
  try {
    (void)read(cost);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string example() {
  std::ostringstream text;
  text << std::ifstream(kExample).rdbuf();
  return text.str();
}

// The message for the example with `from` replaced by `to`.
std::string refusal_with(const std::string& from, const std::string& to) {
  std::string text = example();
  text.replace(text.find(from), from.size(), to);
  Hardware hardware = *read("{kind: roofline}").hardware;
  std::vector<Sourced> numbers;
  try {
    (void)read_calibration(YamlSource("c.yaml", text), hardware, numbers);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Calibration, ReplacesTheCurvesThatItHasAndNoOthers) {
  const Hardware catalogue = *read("{kind: roofline}").hardware;
  const Hardware measured = *read_example().hardware;
  EXPECT_DOUBLE_EQ(measured.gpu.matmul.efficiency[0], 0.75);
  EXPECT_DOUBLE_EQ(measured.gpu.matmul.efficiency[1], 0.6);
  EXPECT_DOUBLE_EQ(measured.gpu.launch.value(), 3e-6);
  EXPECT_DOUBLE_EQ(measured.gpu.attention[1].efficiency, 0.6);
  EXPECT_DOUBLE_EQ(measured.gpu.streaming, 0.85);
  EXPECT_DOUBLE_EQ(measured.interconnect.curves[0].bandwidth.value(), 360e9);
  EXPECT_DOUBLE_EQ(measured.host.alone.value(), 50e9);
  EXPECT_EQ(measured.interconnect.curves[1].base, catalogue.interconnect.curves[1].base);
  EXPECT_EQ(measured.gpu.peak, catalogue.gpu.peak);
  EXPECT_EQ(measured.host.gpus_per_switch, catalogue.host.gpus_per_switch);
}

// The example with only the curve of this name, and `more` in it.
Hardware with_one_curve(const std::string& name, const std::string& more,
                        const std::string& cluster) {
  const std::string text = example();
  const auto curves = text.find("curves:\n");
  const auto begin = text.find("  " + name + ":\n", curves);
  const auto end = text.find("}\n", begin) + 2;
  std::string one = text.substr(begin, end - begin);
  one.insert(one.find('\n') + 1, more);
  Hardware hardware = *read("{kind: roofline}").hardware;
  if (!cluster.empty()) {
    hardware = *read_scenario(YamlSource("test", kBase, {{"cluster", cluster, {}}})).hardware;
  }
  std::string head = text.substr(0, curves) + "curves:\n";
  head.replace(head.find("h100-sxm"), 8, hardware.gpu.name);
  std::vector<Sourced> numbers;
  (void)read_calibration(YamlSource("c.yaml", head + one), hardware, numbers);
  return hardware;
}

constexpr const char* kLoaded = "    under_load: true\n";

TEST(Calibration, OfOneCurveLeavesEveryOtherNumberAsItWas) {
  const Hardware catalogue = *read("{kind: roofline}").hardware;
  const Sustained& before = catalogue.gpu.sustained;
  for (const char* name : {"host", "all_reduce", "streaming", "attention_forward", "matmul"}) {
    const Hardware after = with_one_curve(name, "", "");
    EXPECT_EQ(after.gpu.sustained.matmul, before.matmul) << name;
    EXPECT_EQ(after.gpu.sustained.attention, before.attention) << name;
    EXPECT_EQ(after.gpu.sustained.streaming, before.streaming) << name;
    EXPECT_EQ(after.gpu.sustained.unaligned, before.unaligned) << name;
    EXPECT_EQ(after.interconnect.sustained, catalogue.interconnect.sustained) << name;
  }
  EXPECT_EQ(with_one_curve("host", "", "hgx-b200").gpu.matmul.efficiency[Precision::kFp4],
            read_scenario(YamlSource("test", kBase, {{"cluster", "hgx-b200", {}}}))
                .hardware->gpu.matmul.efficiency[Precision::kFp4]);
}

TEST(Calibration, UnderLoadDropsTheShareOfItsOwnCurveAlone) {
  const Sustained before = read("{kind: roofline}").hardware->gpu.sustained;
  ASSERT_LT(before.matmul[Precision::kFp8], 1);
  const Hardware matmuls = with_one_curve("matmul", kLoaded, "");
  EXPECT_EQ(matmuls.gpu.sustained.matmul[Precision::kBf16], 1);
  EXPECT_EQ(matmuls.gpu.sustained.matmul[Precision::kFp8], before.matmul[Precision::kFp8]);
  EXPECT_EQ(matmuls.gpu.sustained.unaligned, before.unaligned);
  EXPECT_EQ(with_one_curve("streaming", kLoaded, "").gpu.sustained.streaming, 1);
  const Hardware fp8 = with_one_curve("matmul_fp8", kLoaded, "");
  EXPECT_EQ(fp8.gpu.sustained.matmul[Precision::kBf16], before.matmul[Precision::kBf16]);
  EXPECT_EQ(fp8.gpu.sustained.matmul[Precision::kFp8], 1);
  // Nothing that runs beside kernels is measured by a collective alone.
  const Interconnect collectives = with_one_curve("all_reduce", kLoaded, "").interconnect;
  EXPECT_LT(collectives.sustained, 1);
}

TEST(Calibration, OfTheHostLinkLeavesEveryPassAndMessageAsItWas) {
  const auto folder = pipesim::testing::test_folder();
  const std::string text = example();
  const std::string path = (folder / "host.yaml").string();
  std::ofstream(path) << text.substr(0, text.find("  matmul:"))
                      << text.substr(text.find("  host:"));
  const Problem catalogue = prepare_first(read("{kind: roofline}")).problem;
  const Problem host = prepare_first(read("{kind: measured, file: " + path + "}")).problem;
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(host.stage(stage).forward, catalogue.stage(stage).forward);
    EXPECT_EQ(host.stage(stage).backward_input, catalogue.stage(stage).backward_input);
    EXPECT_EQ(host.stage(stage).backward_weight, catalogue.stage(stage).backward_weight);
  }
}

TEST(Calibration, IsTheSourceOfItsNumbers) {
  const Scenario scenario = read_example();
  ASSERT_TRUE(scenario.roofline->calibration);
  EXPECT_EQ(scenario.roofline->calibration->file, kExample);
  const auto source = [&](const std::string& key) {
    const auto found = std::ranges::find(*scenario.sources, key, &Sourced::key);
    return found == scenario.sources->end() ? "" : found->value + " " + found->source;
  };
  EXPECT_TRUE(has(source("matmul.efficiency"), "0.75 measured: ")) << source("matmul.efficiency");
  EXPECT_TRUE(has(source("matmul.efficiency"), "2026-01-01, driver 550.00, cuda 12.4"));
  EXPECT_TRUE(has(source("matmul.efficiency"), "1000 rows, median 3.1%, 90% of rows within 9.0%"));
  EXPECT_TRUE(has(source("all_gather.base"), "fitted: ")) << source("all_gather.base");
}

TEST(Calibration, ChangesTheSecondsOfStages) {
  const auto forward = [](const Scenario& scenario) {
    return prepare_first(scenario).problem.stage(1).forward;
  };
  const Seconds catalogue = forward(read("{kind: roofline}"));
  const Seconds measured = forward(read_example());
  EXPECT_NE(measured, catalogue);
  EXPECT_NEAR(measured / catalogue, 1, 0.3);
}

TEST(Calibration, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal_with("efficiency: 0.75", "efficiency: 0.75"), "");
  EXPECT_TRUE(has(refusal_with("calibration/1", "calibration/2"), "c.yaml:2:9: ")) << "the place";
  EXPECT_TRUE(has(refusal_with("calibration/1", "calibration/2"), "pipesim-calibration/1"));
  EXPECT_TRUE(has(refusal_with("gpu: h100-sxm", "gpu: a100-sxm-80gb"),
                  "was measured on 'a100-sxm-80gb', but cluster dgx-h100 has h100-sxm"));
  EXPECT_TRUE(has(refusal_with("driver: 550.00\n  ", ""), "'driver' is missing"));
  EXPECT_TRUE(has(refusal_with("edge: 30", "egde: 30"), "did you mean 'edge'?"));
  EXPECT_TRUE(has(refusal_with("matmul:", "matmull:"), "did you mean 'matmul'?"));
  EXPECT_TRUE(has(refusal_with("launch: 3 us", "launch: 3"), "unit"));
  EXPECT_TRUE(has(refusal_with("efficiency: 0.75", "efficiency: 7.5"), "c.yaml:"));
  EXPECT_TRUE(has(refusal_with("median: 0.031, ", ""), "'median' is missing"));
  const std::string text = example();
  EXPECT_TRUE(
      has(refusal_with(text.substr(text.find("curves:")), "curves: {}\n"), "at least one curve"));
}

// The example with `from` replaced by `to`, over the catalogue's H100.
Hardware hardware_with(const std::string& from, const std::string& to,
                       std::vector<Sourced>* numbers = nullptr) {
  const Scenario scenario = read("{kind: roofline}");
  std::string text = example();
  text.replace(text.find(from), from.size(), to);
  Hardware hardware = *scenario.hardware;
  std::vector<Sourced> all = *scenario.sources;
  (void)read_calibration(YamlSource("c.yaml", text), hardware, all);
  if (numbers != nullptr) *numbers = all;
  return hardware;
}

// An all-reduce of 8 ranks runs in the switch, of 4 around the ring.
TEST(Calibration, OfTheRingLeavesAllReducesInTheSwitch) {
  const Interconnect catalogue = read("{kind: roofline}").hardware->interconnect;
  const Interconnect ring = hardware_with("note", "note").interconnect;
  const auto seconds = [](const Interconnect& of, int ranks) {
    return collective_seconds(of, {CollectiveKind::kAllReduce, Group::kTensor, Bytes(64e6)},
                              {ranks, ranks});
  };
  ASSERT_TRUE(ring.nvls);
  EXPECT_EQ(ring.sustained, catalogue.sustained);  // measured with nothing beside it
  EXPECT_EQ(seconds(ring, 8), seconds(catalogue, 8));
  EXPECT_NE(seconds(ring, 4), seconds(catalogue, 4));
  std::vector<Sourced> numbers;
  const Interconnect without =
      hardware_with("  host:", "  all_reduce_in_switch: none\n  host:", &numbers).interconnect;
  EXPECT_FALSE(without.nvls);
  EXPECT_GT(seconds(without, 8), seconds(ring, 8));
  EXPECT_TRUE(std::ranges::none_of(numbers, [](const Sourced& number) {
    return number.key.starts_with("all_reduce_in_switch.");
  }));
  const Interconnect own =
      hardware_with("  host:",
                    "  all_reduce_in_switch: {ranks: 4, base: 2 us, per_rank: 2 us, bandwidth: "
                    "500 GB/s, ramp: 15 MB, own_share: 0, error: {rows: 9, median: 0.1, "
                    "within_90: 0.2, spread: 0}}\n  host:")
          .interconnect;
  EXPECT_LT(seconds(own, 4), seconds(without, 4));
  EXPECT_TRUE(has(refusal_with("  host:", "  all_reduce_in_switch: non\n  host:"), "'none'"));
}

const std::string kError = "error: {rows: 9, median: 0.1, within_90: 0.2, spread: 0}}\n";

// One device to a node, or the whole pipeline on one.
Seconds message_of(const std::string& file, int tensor) {
  const auto folder = testing::test_folder() / "c.yaml";
  std::ofstream(folder) << file;
  const Scenario scenario = read_scenario(
      YamlSource("test", kBase,
                 {{"cost", "{kind: measured, file: " + folder.string() + "}", {}},
                  {"parallel.tensor_model_parallel_size", std::to_string(tensor), {}}}));
  return prepare_first(scenario).problem.stage(1).transfer;
}

TEST(Calibration, OfMessagesIsTheLinkBetweenStages) {
  const std::string within =
      "  send_recv: {latency: 5 us, bandwidth: 100 GB/s, ramp: 0 KB, " + kError;
  const std::string between =
      "  send_recv_between_nodes: {gpus: 8, latency: 30 us, bandwidth: 10 GB/s, ramp: 0 KB, " +
      kError;
  const double bytes = 4096.0 * 4096 * 2;
  const Seconds near = message_of(example() + within, 1);
  EXPECT_NEAR(near.value(), 5e-6 + bytes / 100e9, 1e-12);
  EXPECT_EQ(message_of(example() + between, 1), message_of(example(), 1));
  EXPECT_EQ(message_of(example() + within, 8), message_of(example(), 8));
  EXPECT_NEAR((message_of(example() + between, 8) - message_of(example(), 8)).value(),
              30e-6 + bytes / 10e9 - (10e-6 + bytes / (0.94 * 50e9)), 1e-9);
}

// Two GPUs of a node that share a card get half of it each; so does each of eight that share four.
TEST(Calibration, OfMessagesBetweenNodesIsOfTheCardsThatTookPart) {
  Hardware hardware = *read("{kind: roofline}").hardware;
  hardware.interconnect.nics_per_node = 4;
  std::vector<Sourced> numbers;
  (void)read_calibration(YamlSource("c.yaml", example() +
                                                  "  send_recv_between_nodes: {gpus: 2, latency: "
                                                  "0 us, bandwidth: 10 GB/s, ramp: 0 KB, " +
                                                  kError),
                         hardware, numbers);
  EXPECT_DOUBLE_EQ(hardware.interconnect.between_nodes[4]->bandwidth.value(), 20e9);
  EXPECT_NEAR(collective_seconds(hardware.interconnect,
                                 {CollectiveKind::kSendReceive, Group::kTensor, Bytes(1e9)}, {2, 1})
                  .value(),
              0.1, 1e-12);
  EXPECT_TRUE(has(refusal_with("  host:",
                               "  send_recv_between_nodes: {gpus: 16, latency: 0 us, "
                               "bandwidth: 10 GB/s, ramp: 0 KB, " +
                                   kError + "  host:"),
                  "the cluster's nodes have 8 GPUs"));
}

TEST(Calibration, SaysWhatPassesLoseUnlessTheScenarioDoes) {
  const auto folder = testing::test_folder() / "shares.yaml";
  std::ofstream(folder) << example() << "  compute_beside_messages: {share: 0.05, " << kError
                        << "  compute_beside_copies: {share: 0.02, " << kError
                        << "  compute_beside_collectives: {share: 0.3, " << kError;
  const std::string cost = "{kind: measured, file: " + folder.string() + "}";
  const Scenario measured = read(cost);
  EXPECT_EQ(measured.cluster->message_share, 0.05);
  EXPECT_EQ(measured.cluster->copy_share, 0.02);
  EXPECT_EQ(measured.hardware->interconnect.exchange_share, 0.3);
  const Scenario stated = read_scenario(
      YamlSource("test", kBase,
                 {{"cost", cost, {}},
                  {"cluster", "{name: dgx-h100, gpu: {message_share: 0, copy_share: 0.1}}", {}}}));
  EXPECT_EQ(stated.cluster->message_share, 0.0);
  EXPECT_EQ(stated.cluster->copy_share, 0.1);
  EXPECT_FALSE(read_example().cluster->message_share);
}

TEST(Calibration, RefusesWhatNoMeasurementCanBe) {
  EXPECT_TRUE(has(refusal_with("duplex: 30 GB/s", "duplex: 60 GB/s"),
                  "duplex: must not be more than alone"));
  EXPECT_TRUE(has(refusal_with("within_90: 0.09", "within_90: 0.03"),
                  "within_90: must not be less than median"));
  EXPECT_TRUE(has(refusal_with("within_90: 0.09", "within_90: 0.03"), "c.yaml:"));
  EXPECT_EQ(refusal_with("date: 2026-01-01", "date: 2024-02-29"), "");
  for (const char* day : {"2026-02-29", "2026-13-01", "2026-01-00", "yesterday", "2026-01-01x"}) {
    EXPECT_TRUE(has(refusal_with("date: 2026-01-01", std::string("date: ") + day),
                    std::string("'") + day + "' is no day; expected one as 2026-11-21"))
        << day;
  }
}

TEST(Calibration, ReadsWhatIsThereForPeopleAsStrictly) {
  const std::string curves = "curves:\n";
  const std::string notes =
      "by_size: {copy/h2d: {latency: 9 us, bandwidth: 52 GB/s, "
      "error: {rows: 9, median: 0.01, within_90: 0.03, spread: 0.002}}}\n"
      "not_measured: [\"nccl: one GPU\"]\n";
  EXPECT_EQ(refusal_with(curves, notes + curves), "");
  EXPECT_TRUE(has(refusal_with(curves, "by_size: {copy: {latency: 9 us}}\n" + curves), "error"));
  EXPECT_TRUE(has(refusal_with(curves, "not_measured: nccl\n" + curves), "not_measured"));
  EXPECT_TRUE(has(refusal_with(curves, "by_sice: {}\n" + curves), "did you mean 'by_size'?"));
}

TEST(Calibration, NeedsItsFileAndAModel) {
  EXPECT_TRUE(has(refusal_of("{kind: measured}"), "'file' is missing"));
  EXPECT_TRUE(
      has(refusal_of("{kind: measured, file: nowhere.yaml}"), "cannot read 'nowhere.yaml'"));
  EXPECT_TRUE(has(refusal_of("{kind: roofline, file: x}"), "unknown key"));
  EXPECT_TRUE(has(refusal_of("{kind: measurd, file: x}"), "did you mean 'measured'?"));
}

}  // namespace
}  // namespace pipesim::calibration_test
