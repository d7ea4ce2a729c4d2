// From measurements to a calibration file that scenarios take: without a GPU, on measurements that
// a known GPU of the cost model would give.
#include "validate/calibration/calibration_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/read/hardware.h"
#include "sim/read/scenario.h"
#include "tests/app/command.h"
#include "tests/folder.h"
#include "tests/sanitized.h"
#include "validate/calibration/compare_layers.h"
#include "validate/calibration/measurements_csv.h"

namespace pipesim::calibration::calibration_file_test {
namespace {

constexpr double kNoise = 0.02;
constexpr double kSpread = 0.01;

Gpu catalogue_h100() {
  const HardwareCatalog catalogue = read_hardware_folder(data_folder("catalog"), {});
  return std::ranges::find(catalogue.gpus, "h100-sxm", [](const GpuEntry& e) { return e.gpu.name; })
      ->gpu;
}

double catalogue_collectives_kept() {
  const HardwareCatalog catalogue = read_hardware_folder(data_folder("catalog"), {});
  return std::ranges::find(catalogue.gpus, "h100-sxm", [](const GpuEntry& e) { return e.gpu.name; })
      ->interconnect.sustained;
}

// An H100 unlike the catalogue's.
Gpu known_gpu() {
  Gpu gpu = catalogue_h100();
  gpu.launch = Seconds(4e-6);
  gpu.matmul.efficiency = {0.7, 0.55};
  gpu.matmul.memory_efficiency = 0.7;
  gpu.attention[0] = {.efficiency = 0.6, .head_ramp = 30, .streaming = 0.9};
  gpu.attention[1] = {.efficiency = 0.5, .head_ramp = 15, .streaming = 0.5};
  gpu.streaming = 0.75;
  return gpu;
}

const CollectiveCurve kGather{.base = Seconds(9e-6),
                              .per_rank = Seconds(1e-6),
                              .bandwidth = BytesPerSecond(300e9),
                              .ramp = Bytes(3e6),
                              .own_share = 0.3};

const MessageCurve kMessages{
    .latency = Seconds(8e-6), .bandwidth = BytesPerSecond(330e9), .ramp = Bytes(2e6)};
// With 4 GPUs of each node at once, each of which has a quarter of the cards' bandwidth or less.
const MessageCurve kMessagesBetweenNodes{
    .latency = Seconds(20e-6), .bandwidth = BytesPerSecond(22e9), .ramp = Bytes(1e6)};
constexpr double kMessageShare = 0.06;  // of each direction
constexpr double kCopyShare = 0.02;
constexpr double kCollectiveShare = 0.19;

class Recorder {
 public:
  void add(Point point, Seconds time) {
    const double unit = static_cast<double>(random_()) / static_cast<double>(std::mt19937::max());
    const double median = (1 + kNoise * (2 * unit - 1)) * time.value() * 1e6;
    point.time_us = {median, median * (1 - kSpread / 2), median * (1 + kSpread / 2), median, 9};
    measured_.points.push_back(std::move(point));
  }
  Measurements& measured() { return measured_; }

 private:
  std::mt19937 random_{5};
  Measurements measured_;
};

Point sized(const char* group, const char* name, Parameters parameters, double bytes) {
  Point point;
  point.group = group;
  point.name = name;
  point.parameters = std::move(parameters);
  point.parameters.emplace_back("size", std::to_string(static_cast<long>(bytes)));
  point.bytes = bytes;
  return point;
}

void record_kernels(Recorder& recorder) {
  const Gpu gpu = known_gpu();
  const Plan plan = make_plan(Mode::kQuick);
  for (const auto& spec : plan.matmuls) {
    recorder.add(point_of(spec), matmul_seconds(gpu, spec.matmul()));
  }
  for (const auto& shape : plan.attention) {
    for (const bool backward : {false, true}) {
      recorder.add(point_of(shape, backward), attention_seconds(gpu, shape.attention(backward)));
    }
  }
  for (const auto& spec : plan.kernels) {
    const int kernels = spec.kernel == Kernel::kNormWeightGradient ? 2 : 1;
    recorder.add(point_of(spec), memory_bound_seconds(gpu, Bytes(spec.bytes()), kernels));
  }
}

void record_transfers(Recorder& recorder) {
  for (double bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
    for (const char* name : {"h2d", "d2h"}) {
      recorder.add(sized("copy", name, {{"during", "nothing"}}, bytes),
                   Seconds(10e-6 + bytes / 52e9));
      recorder.add(sized("copy", name, {{"during", "other"}}, bytes),
                   Seconds(12e-6 + bytes / 40e9));
    }
    for (const int ranks : {2, 4, 8}) {
      recorder.add(sized("nccl", "all_gather", {{"ranks", std::to_string(ranks)}}, bytes),
                   collective_seconds(kGather, CollectiveKind::kAllGather, Bytes(bytes), ranks));
    }
    recorder.add(sized("network", "all_gather", {{"ranks", "4"}, {"nodes", "2"}}, bytes),
                 Seconds(40e-6 + bytes / 20e9));
  }
}

void record_messages(Recorder& recorder) {
  for (double bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
    for (const char* name : {"send_recv", "exchange"}) {
      for (const char* ranks : {"2", "4"}) {
        recorder.add(sized("nccl", name, {{"ranks", ranks}}, bytes),
                     message_seconds(kMessages, Bytes(bytes)));
      }
      recorder.add(sized("network", name, {{"ranks", "8"}, {"nodes", "2"}}, bytes),
                   message_seconds(kMessagesBetweenNodes, Bytes(bytes)));
      // One GPU of each node has a card for itself.
      recorder.add(sized("network", name, {{"ranks", "2"}, {"nodes", "2"}}, bytes),
                   Seconds(18e-6 + bytes / 44e9));
    }
  }
}

void record_interference(Recorder& recorder) {
  const MatmulSpec spec{MatmulPass::kForward, Precision::kBf16, 8192, 8192, 8192};
  const Seconds alone = matmul_seconds(known_gpu(), spec.matmul());
  const auto add = [&](const Parameters& where, const char* during, double lost) {
    recorder.add(disturbed_point_of(spec, where, during), 1 / (1 - lost) * alone);
  };
  const Parameters two{{"ranks", "2"}};
  add({}, "nothing", 0);
  add({}, "h2d", kCopyShare);
  add({}, "d2h", kCopyShare);
  add({}, "h2d_and_d2h", 2 * kCopyShare);
  add(two, "nothing", 0);
  add(two, "send_recv", 2 * kMessageShare);
  add(two, "all_reduce", kCollectiveShare);
  add({{"ranks", "4"}}, "all_reduce", 0.9);  // of which nothing was measured alone
}

// Layers that take what the known GPU's kernels take, and `factor` times that in W.
void record_layers(Recorder& recorder, double factor) {
  Hardware hardware;
  hardware.gpu = known_gpu();
  hardware.gpu.sustained = {};
  for (const LayerSlice& slice : make_plan(Mode::kQuick).layers) {
    for (const char pass : {'F', 'B', 'W'}) {
      recorder.add(point_of(slice, "layer", pass),
                   (pass == 'W' ? factor : 1) * modelled_seconds(slice, pass, true, hardware));
    }
  }
}

Measurements recorded() {
  Recorder recorder;
  recorder.measured().facts = {{"device", "NVIDIA H100 80GB HBM3"},
                               {"date", "2026-01-02"},
                               {"driver", "580.1"},
                               {"cudnn", "9.1.0"},
                               {"multiprocessors", "132"},
                               {"under_load", "matmul attention"},
                               {"mode", "\"quick\""}};
  recorder.measured().not_measured = {{"layer", "out of \"memory\": 6 GiB"}};
  record_kernels(recorder);
  record_transfers(recorder);
  record_messages(recorder);
  record_interference(recorder);
  record_layers(recorder, 1.25);
  return recorder.measured();
}

std::string folder_of(const Measurements& measured) {
  const auto folder = pipesim::testing::test_folder();
  std::ofstream out(folder / "measurements.csv");
  write_measurements(measured, out);
  return folder.string();
}

std::string scenario_with(const std::string& folder) {
  const std::string path = folder + "/scenario.yaml";
  std::ofstream(path) << "model: llama3-8b\ncluster: dgx-h100\nschedule: 1f1b\n"
                         "parallel: {pipeline_model_parallel_size: 4}\n"
                         "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n"
                         "cost: {kind: measured, file: calibration.yaml}\n";
  return path;
}

class CalibrationFile : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = folder_of(recorded());
    text_ = fit_folder(folder_, {});
  }
  static inline std::string folder_;
  static inline std::string text_;
};

TEST_F(CalibrationFile, GivesAScenarioTheGpuThatWasMeasured) {
  const Scenario scenario = read_scenario(YamlSource::from_file(scenario_with(folder_), {}));
  const Gpu known = known_gpu();
  const Gpu& read = scenario.hardware->gpu;
  for (const std::int64_t side : {1536, 3072, 6144, 10240}) {  // that were not measured
    for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
      const Matmul matmul{.m = side, .n = 4096, .k = 5120, .precision = precision};
      EXPECT_NEAR(matmul_seconds(read, matmul) / matmul_seconds(known, matmul), 1, 0.05) << side;
    }
  }
  for (const std::int64_t head : {64, 96, 128}) {
    for (const bool backward : {false, true}) {
      const Attention attention = AttentionShape{2, 16, 16, 3072, head}.attention(backward);
      EXPECT_NEAR(attention_seconds(read, attention) / attention_seconds(known, attention), 1, 0.03)
          << head;
    }
  }
  EXPECT_NEAR(read.streaming / known.streaming, 1, 0.02);
  EXPECT_NEAR(scenario.hardware->host.alone.value(), 52e9, 1e9);
  EXPECT_NEAR(scenario.hardware->host.duplex.value(), 40e9, 1e9);
  const CollectiveCurve& gather =
      scenario.hardware->interconnect.curves[static_cast<int>(CollectiveKind::kAllGather)];
  for (const Bytes bytes : {Bytes(3e5), Bytes(3e6), Bytes(1e8)}) {
    const auto seconds = [&](const CollectiveCurve& curve) {
      return collective_seconds(curve, CollectiveKind::kAllGather, bytes, 8);
    };
    EXPECT_NEAR(seconds(gather) / seconds(kGather), 1, 0.05) << bytes.value();
  }
}

TEST_F(CalibrationFile, SaysOfACurveThatItWasMeasuredUnderLoad) {
  const std::string file = pipesim::testing::read_file(folder_ + "/calibration.yaml");
  const auto of = [&](const std::string& curve) {
    const auto begin = file.find("\n  " + curve + ":\n");
    return file.substr(begin, file.find("error:", begin) - begin);
  };
  EXPECT_NE(of("matmul_fp8").find("under_load: true"), std::string::npos);
  EXPECT_NE(of("attention_backward").find("under_load: true"), std::string::npos);
  EXPECT_EQ(of("streaming").find("under_load"), std::string::npos);
  EXPECT_EQ(of("all_gather").find("under_load"), std::string::npos);
  const Scenario scenario = read_scenario(YamlSource::from_file(scenario_with(folder_), {}));
  const Sustained& kept = scenario.hardware->gpu.sustained;
  EXPECT_EQ(kept.matmul[Precision::kBf16], 1);
  EXPECT_EQ(scenario.hardware->interconnect.sustained, catalogue_collectives_kept());
}

TEST_F(CalibrationFile, KeepsWhatWasMeasuredBetweenNodesBySize) {
  const std::string file = pipesim::testing::read_file(folder_ + "/calibration.yaml");
  const std::string name = "  network/all_gather/ranks=4/nodes=2:";
  const auto found = file.find(name);
  ASSERT_NE(found, std::string::npos) << file;
  EXPECT_GT(found, file.find("by_size:"));
  const auto number = [&](const std::string& key) {
    return std::stod(file.substr(file.find(key, found) + key.size()));
  };
  EXPECT_NEAR(number("latency: "), 40, 1);
  EXPECT_NEAR(number("bandwidth: "), 20, 0.3);
}

TEST_F(CalibrationFile, HasTheLinksBetweenStages) {
  const Scenario scenario = read_scenario(YamlSource::from_file(scenario_with(folder_), {}));
  const Interconnect& read = scenario.hardware->interconnect;
  ASSERT_TRUE(read.messages);
  ASSERT_TRUE(read.between_nodes[4]);
  const Collective message{CollectiveKind::kSendReceive, Group::kTensor, {}};
  for (const Bytes bytes : {Bytes(3e5), Bytes(3e6), Bytes(1e8)}) {
    Collective sent = message;
    sent.bytes = bytes;
    EXPECT_NEAR(collective_seconds(read, sent, {2, 2}) / message_seconds(kMessages, bytes), 1, 0.05)
        << bytes.value();
    // DGX H100: a card for every GPU.
    EXPECT_NEAR(
        collective_seconds(read, sent, {2, 1}) / message_seconds(kMessagesBetweenNodes, bytes), 1,
        0.05)
        << bytes.value();
  }
  const std::string file = pipesim::testing::read_file(folder_ + "/calibration.yaml");
  EXPECT_NE(file.find("  send_recv_between_nodes:\n    gpus: 4\n"), std::string::npos) << file;
}

TEST_F(CalibrationFile, HasWhatPassesLoseToMessagesCopiesAndCollectives) {
  const Scenario scenario = read_scenario(YamlSource::from_file(scenario_with(folder_), {}));
  EXPECT_NEAR(*scenario.cluster->message_share, kMessageShare, 0.015);
  EXPECT_NEAR(*scenario.cluster->copy_share, kCopyShare, 0.015);
  EXPECT_NEAR(scenario.hardware->interconnect.exchange_share, kCollectiveShare, 0.03);
}

TEST_F(CalibrationFile, SetsWholeLayersBesideWhatItsCurvesSayOfThem) {
  const std::string file = pipesim::testing::read_file(folder_ + "/calibration.yaml");
  const auto error = [&](const std::string& layer) {
    const auto at = file.find("\n  " + layer + ": {measured: ");
    EXPECT_NE(at, std::string::npos) << layer << file;
    return std::stod(file.substr(file.find("error: ", at) + 7));
  };
  const std::string slice = "layer=gpt-6.2b/tensor_parallel=1/micro_batch=3/sequence=1024";
  EXPECT_NEAR(error("layer/F/" + slice), 0, 0.05);
  EXPECT_NEAR(error("layer/B/" + slice), 0, 0.05);
  EXPECT_NEAR(error("layer/W/" + slice), 1 / 1.25 - 1, 0.04);
  EXPECT_NE(text_.find("layers, measured and as the curves above say\n"), std::string::npos);
  EXPECT_NE(text_.find("  6 rows, error median "), std::string::npos) << text_;
}

class ShownCosts : public pipesim::testing::Command {};

TEST_F(ShownCosts, NameTheMeasurementsAsTheirSource) {
  const std::string folder = folder_of(recorded());
  (void)fit_folder(folder, {});
  const auto shown = run("show " + scenario_with(folder) + " --costs");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_NE(shown.output.find("NVIDIA H100 80GB HBM3, 2026-01-02, driver 580.1, cudnn 9.1.0"),
            std::string::npos)
      << shown.output;
}

TEST_F(CalibrationFile, PrintsAndStoresTheErrorOfEveryCurveAndPoint) {
  const std::string residuals = pipesim::testing::read_file(folder_ + "/residuals.csv");
  std::size_t rows = 0;
  for (const Point& point : recorded().points) {
    const bool compared = point.parameter("during") != "nothing" && point.parameter("ranks") != "4";
    if (point.group == "interference" && !compared) continue;
    ++rows;
    EXPECT_NE(residuals.find("," + point.key() + ","), std::string::npos) << point.key();
  }
  EXPECT_GE(static_cast<std::size_t>(std::ranges::count(residuals, '\n')), rows + 1);
  EXPECT_NE(text_.find("matmul_fp8\n"), std::string::npos) << text_;
  EXPECT_NE(text_.find("repeated within 1.0%"), std::string::npos) << text_;
  EXPECT_NE(text_.find("all_reduce: not fitted: nothing of it was measured"), std::string::npos);
}

TEST_F(CalibrationFile, IsTheSameEveryTime) {
  const std::string once = pipesim::testing::read_file(folder_ + "/calibration.yaml");
  EXPECT_EQ(fit_folder(folder_, {}), text_);
  EXPECT_EQ(pipesim::testing::read_file(folder_ + "/calibration.yaml"), once);
}

TEST(CalibrationOf, CopiesAloneLeavesTheOtherCurvesToTheCatalogue) {
  Recorder recorder;
  recorder.measured().facts = recorded().facts;
  record_transfers(recorder);
  const std::string folder = folder_of(recorder.measured());
  (void)fit_folder(folder, {});
  const Scenario scenario = read_scenario(YamlSource::from_file(scenario_with(folder), {}));
  EXPECT_NEAR(scenario.hardware->host.alone.value(), 52e9, 1e9);
  EXPECT_EQ(scenario.hardware->gpu.launch, catalogue_h100().launch);
  EXPECT_FALSE(scenario.hardware->interconnect.messages);
  EXPECT_FALSE(scenario.hardware->interconnect.between_nodes[4]);
  EXPECT_EQ(scenario.hardware->interconnect.exchange_share, kExchangeShare);
  EXPECT_FALSE(scenario.cluster->message_share);
  EXPECT_FALSE(scenario.cluster->copy_share);
}

TEST(CalibrationOf, ComputeThatLosesNothingIsNoShare) {
  Recorder recorder;
  recorder.measured().facts = recorded().facts;
  const MatmulSpec spec{MatmulPass::kForward, Precision::kBf16, 8192, 8192, 8192};
  for (const char* during : {"nothing", "h2d"}) {  // faster beside copies, as noise may have it
    Point point = disturbed_point_of(spec, {}, during);
    point.time_us = {during[0] == 'n' ? 1000.0 : 995.0, 990, 1010, 990, 9};
    recorder.measured().points.push_back(point);
  }
  const Fitted fitted = fit_measurements(recorder.measured(), catalogue_h100(), {}, 0);
  const auto found = std::ranges::find(fitted.curves, "compute_beside_copies", &FittedCurve::name);
  ASSERT_NE(found, fitted.curves.end());
  EXPECT_EQ(found->numbers, (Numbers{{"share", "0"}}));
}

TEST(CalibrationOf, LayersOfAShapeThatNobodyKnowsAreNamed) {
  Recorder recorder;
  recorder.measured().facts = recorded().facts;
  record_transfers(recorder);
  Point point = point_of(make_plan(Mode::kQuick).layers.front(), "layer", 'F');
  point.parameters[0].second = "gpt-9";
  recorder.add(point, Seconds(1e-3));
  const std::string text = fit_folder(folder_of(recorder.measured()), {});
  EXPECT_NE(text.find("sequence=1024: not fitted: no layer shape is named 'gpt-9'"),
            std::string::npos)
      << text;
}

// Measured once with pipesim calibrate --device cpu: layers of another run than the curves'.
TEST(CalibrationOf, ACoreHasItsLayersBesideItsCurves) {
  const auto folder = pipesim::testing::test_folder();
  std::filesystem::copy_file(
      std::string(PIPESIM_SOURCE_DIR) + "/tests/calibration/data/cpu_core.csv",
      folder / "measurements.csv", std::filesystem::copy_options::overwrite_existing);
  (void)fit_folder(folder, {});
  const YamlSource source = YamlSource::from_file((folder / "calibration.yaml").string(), {});
  YamlMap root(source.root());
  std::size_t layers = 0;
  for (const auto& [name, layer] : root.require("layers", "").entries()) {
    ++layers;
    YamlMap map(layer);
    EXPECT_NEAR(map.require("error", "").number(-1, 1), 0, 0.2) << name;
  }
  EXPECT_EQ(layers, 6U);
}

// The median error of every curve of a calibration file.
std::map<std::string, double> errors_of_curves(const std::filesystem::path& file) {
  const YamlSource source = YamlSource::from_file(file.string(), {});
  YamlMap root(source.root());
  std::map<std::string, double> errors;
  for (const auto& [name, curve] : root.require("curves", "").entries()) {
    YamlMap numbers(curve);
    YamlMap error(numbers.require("error", ""));
    errors[name] = error.require("median", "").number(0, 1);
  }
  return errors;
}

// Measured once with pipesim calibrate --mode full: the file beside it is no worse than what is
// fitted to it today, and whole layers are as its curves say.
TEST(CalibrationOf, AnH100HasItsLayersBesideItsCurves) {
  if (pipesim::testing::kSanitized) GTEST_SKIP() << "2450 points, a minute beneath a sanitizer";
  const std::filesystem::path measured =
      std::string(PIPESIM_SOURCE_DIR) + "/validate/calibration/measured/h100-sxm";
  const auto folder = pipesim::testing::test_folder();
  std::filesystem::copy_file(measured / "measurements.csv", folder / "measurements.csv",
                             std::filesystem::copy_options::overwrite_existing);
  (void)fit_folder(folder, {});
  const auto stored = errors_of_curves(measured / "calibration.yaml");
  const auto fitted = errors_of_curves(folder / "calibration.yaml");
  ASSERT_EQ(stored.size(), fitted.size());
  for (const auto& [curve, error] : fitted) EXPECT_NEAR(stored.at(curve), error, 2e-3) << curve;
  const YamlSource source = YamlSource::from_file((folder / "calibration.yaml").string(), {});
  YamlMap root(source.root());
  std::vector<double> errors;
  for (const auto& [name, layer] : root.require("layers", "").entries()) {
    YamlMap map(layer);
    errors.push_back(std::abs(map.require("error", "").number(-1, 1)));
  }
  std::ranges::sort(errors);
  ASSERT_EQ(errors.size(), 18U);
  EXPECT_LT(errors[9], 0.04);
  EXPECT_LT(errors.back(), 0.2);
}

TEST(CalibrationOf, AGraceHopperIsNoH200) {
  Measurements measured = recorded();
  for (auto& [name, value] : measured.facts) {
    if (name == "device") value = "NVIDIA GH200 480GB";
  }
  EXPECT_THROW((void)fit_folder(folder_of(measured), {}), InputError);
}

// Copies of one direction at 50 GB/s and of the other at 30; beside the other way by that factor.
std::string host_of(double factor, double together) {
  Recorder recorder;
  recorder.measured().facts = recorded().facts;
  for (double bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) {
    for (const auto& [name, rate] : {std::pair{"h2d", 50e9}, {"d2h", 30e9}}) {
      recorder.add(sized("copy", name, {{"during", "nothing"}}, bytes), Seconds(bytes / rate));
      recorder.add(sized("copy", name, {{"during", "other"}}, bytes),
                   Seconds(bytes / (factor * rate)));
      if (together == 0) continue;
      recorder.add(sized("copy_together", name, {{"during", "other"}}, bytes),
                   Seconds(bytes / (together * rate)));
    }
  }
  const std::string folder = folder_of(recorder.measured());
  (void)fit_folder(folder, {});
  std::ifstream file(folder + "/calibration.yaml");
  return {std::istreambuf_iterator<char>(file), {}};
}

double gigabytes(const std::string& file, const std::string& name) {
  return std::stod(file.substr(file.find(name + ": ") + name.size() + 2));
}

TEST(CalibrationOf, CopiesTakesTheSlowerDirection) {
  const std::string file = host_of(0.8, 0);
  EXPECT_NEAR(gigabytes(file, "alone"), 30, 1);
  EXPECT_NEAR(gigabytes(file, "duplex"), 24, 1);
}

TEST(CalibrationOf, CopiesBothWaysIsNeverFasterThanOneWay) {
  const std::string file = host_of(1.05, 0);  // as noise may have it
  EXPECT_EQ(gigabytes(file, "alone"), gigabytes(file, "duplex"));
}

TEST(CalibrationOf, CopiesOfAllGpusOfASwitchGoBeforeThoseOfOne) {
  EXPECT_NEAR(gigabytes(host_of(0.8, 0.4), "duplex"), 12, 1);
}

TEST(CalibrationOf, UnfusedAttentionIsNoCurve) {
  Measurements measured = recorded();
  measured.facts.emplace_back("attention", kUnfusedAttention);
  const Fitted fitted = fit_measurements(measured, catalogue_h100(), {}, 0);
  EXPECT_EQ(std::ranges::find(fitted.curves, "attention_forward", &FittedCurve::name),
            fitted.curves.end());
}

std::string refusal(const std::string& folder, const FitSettings& settings) {
  try {
    (void)fit_folder(folder, settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CalibrationOf, ADeviceOfAnotherFamilyIsRefusedWithItsOwnEntry) {
  Measurements measured = recorded();
  const std::string h100 = folder_of(measured);
  EXPECT_NE(
      refusal(h100, {.gpu = "a100-sxm-80gb"}).find("which is no a100-sxm-80gb; --gpu h100-sxm"),
      std::string::npos)
      << refusal(h100, {.gpu = "a100-sxm-80gb"});
  measured.facts[0].second = "cpu core";
  const std::string core = folder_of(measured);
  EXPECT_NE(refusal(core, {.gpu = "h100-sxm"}).find("measured on 'cpu core', which is no h100-sxm"),
            std::string::npos);
}

// Gathers of which a third takes `factor` times as long and a third that again, in an order that
// follows neither sizes nor ranks.
Measurements disturbed_by(double factor) {
  Measurements measured = recorded();
  int number = 0;
  for (Point& point : measured.points) {
    if (point.group != "nccl" || point.name != "all_gather") continue;
    point.time_us.median *= std::pow(factor, (number + number / 3) % 3);
    ++number;
  }
  return measured;
}

TEST(CalibrationOf, ACurveOffByMoreThanHalfIsRefusedAndByAFifthDoubtful) {
  const std::string refused = folder_of(disturbed_by(1000));
  const std::string text = fit_folder(refused, {});
  EXPECT_NE(text.find("all_gather: not fitted: the best fit is off by "), std::string::npos)
      << text;
  const auto errors = errors_of_curves(refused + "/calibration.yaml");
  EXPECT_EQ(errors.count("all_gather"), 0U);
  EXPECT_EQ(errors.count("matmul"), 1U);
  const std::string doubtful = folder_of(disturbed_by(1.6));
  EXPECT_NE(fit_folder(doubtful, {}).find("all_gather: doubtful: off by "), std::string::npos)
      << fit_folder(doubtful, {});
  EXPECT_EQ(errors_of_curves(doubtful + "/calibration.yaml").count("all_gather"), 1U);
}

TEST(CalibrationOf, AllReducesOfTheSwitchAreACurveOfTheirOwn) {
  Measurements measured;
  measured.facts = recorded().facts;
  Recorder recorder;
  for (double bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
    for (const int ranks : {2, 4, 8}) {
      Parameters where{{"ranks", std::to_string(ranks)}};
      if (ranks > 2) where.emplace_back("in_switch", "1");
      const double rate = ranks > 2 ? 450e9 : 200e9;
      recorder.add(sized("nccl", "all_reduce", where, bytes), Seconds(10e-6 + bytes / rate));
    }
  }
  measured.points = recorder.measured().points;
  const Fitted fitted = fit_measurements(measured, catalogue_h100(), {}, 0);
  const auto found = std::ranges::find(fitted.curves, "all_reduce_in_switch", &FittedCurve::name);
  ASSERT_NE(found, fitted.curves.end());
  EXPECT_EQ(found->numbers.front(), (std::pair<std::string, std::string>{"ranks", "4"}));
  EXPECT_EQ(found->rows.size(), 14U);
}

TEST(CalibrationOf, AnUnknownDeviceAsksForItsName) {
  Measurements measured = recorded();
  measured.facts[0].second = "NVIDIA H900";
  measured.facts[4].second = "114";
  const std::string folder = folder_of(measured);
  EXPECT_NE(refusal(folder, {}).find("has no 'NVIDIA H900' of 114"), std::string::npos)
      << refusal(folder, {});
  EXPECT_NE(refusal(folder, {.gpu = "h100-sxn"}).find("did you mean 'h100-sxm'?"),
            std::string::npos);
  EXPECT_EQ(refusal(folder, {.gpu = "h100-sxm"}), "accepted");
  EXPECT_NE(refusal("/nowhere", {}).find("cannot read"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::calibration::calibration_file_test
