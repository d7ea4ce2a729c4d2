// Which number of the simulator each measured row sets: files of one kind of row, fitted and read.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "models/collective.h"
#include "sim/core/data_folder.h"
#include "sim/read/hardware.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"
#include "validate/calibration/calibration_file.h"
#include "validate/calibration/compare_layers.h"
#include "validate/calibration/measurements_csv.h"

namespace pipesim::calibration::rows_test {
namespace {

using Texts = std::map<std::string, std::string>;

Interconnect catalogue_node() {
  const HardwareCatalog catalogue = read_hardware_folder(data_folder("catalog"), {});
  return std::ranges::find(catalogue.clusters, "dgx-h100",
                           [](const ClusterEntry& entry) { return entry.hardware.name; })
      ->hardware.interconnect;
}

Gpu catalogue_gpu() {
  const HardwareCatalog catalogue = read_hardware_folder(data_folder("catalog"), {});
  return std::ranges::find(catalogue.gpus, "h100-sxm",
                           [](const GpuEntry& entry) { return entry.gpu.name; })
      ->gpu;
}

Seconds between_nodes(const Interconnect& node, CollectiveKind kind, double bytes, int nodes) {
  return collective_seconds(node, {kind, Group::kTensor, Bytes(bytes)}, {8 * nodes, 8});
}

Point row(const char* group, const std::string& name, Parameters parameters, double bytes,
          Seconds time, double spread = 0) {
  Point point;
  point.group = group;
  point.name = name;
  point.parameters = std::move(parameters);
  point.bytes = bytes;
  const double us = time.value() * 1e6;
  point.time_us = {us, us * (1 - spread / 2), us * (1 + spread / 2), us, 9};
  return point;
}

Measurements measured(std::vector<Point> points) {
  return {.facts = {{"device", "NVIDIA H100 80GB HBM3"},
                    {"date", "2026-01-02"},
                    {"driver", "580.1"},
                    {"multiprocessors", "132"}},
          .points = std::move(points),
          .not_measured = {}};
}

// A cluster whose NICs are slow and late, unlike the catalogue's.
Interconnect slow_network() {
  Interconnect node = catalogue_node();
  node.sustained = 1;
  node.nic_latency = Seconds(35e-6);
  node.nic_bandwidth = BytesPerSecond(21e9);
  node.nic_ramp = Bytes(4e6);
  return node;
}

std::vector<Point> network_rows(const char* name, CollectiveKind kind) {
  std::vector<Point> points;
  for (const int nodes : {2, 4}) {
    for (double bytes = 1 << 16; bytes <= 1 << 30; bytes *= 4) {
      const Parameters where{{"ranks", std::to_string(8 * nodes)},
                             {"nodes", std::to_string(nodes)},
                             {"size", std::to_string(static_cast<long>(bytes))}};
      points.push_back(
          row("network", name, where, bytes, between_nodes(slow_network(), kind, bytes, nodes)));
      // One GPU of each node says nothing of eight that share the node's NICs.
      Parameters alone = where;
      alone[0].second = std::to_string(nodes);
      points.push_back(row("network", name, alone, bytes, Seconds(1)));
    }
  }
  return points;
}

Parameters small_layer(const char* mode) {
  return {{"mode", mode},       {"layers", "2"},      {"layer", "llama"},  {"tensor_parallel", "1"},
          {"micro_batch", "1"}, {"sequence", "2048"}, {"hidden", "1024"},  {"feed_forward", "3584"},
          {"heads", "8"},       {"kv_heads", "2"},    {"head_dim", "128"}, {"gated", "1"},
          {"rms_norm", "1"},    {"dropout", "0"}};
}

constexpr Seconds kEager(17e-6);
constexpr Seconds kGraphs(0.8e-6);
constexpr Seconds kLaunch(5e-6);

std::vector<Point> host_rows() {
  std::vector<Point> points{row("launch", "host_launch", {}, 0, kLaunch)};
  for (const auto& [name, mode, each] :
       {std::tuple{"F", "eager", kEager}, std::tuple{"B", "eager", kEager},
        std::tuple{"FB", "cuda_graphs", kGraphs}}) {
    Point point = row("host", name, small_layer(mode), 0, kLaunch);
    const double us = operations_of(point, true) * each.value() * 1e6;
    point.time_us = {us, us, us, us, 9};
    points.push_back(point);
  }
  return points;
}

std::vector<Point> spread_rows() {
  std::vector<Point> points;
  for (const char* pass : {"F", "B", "W"}) {
    points.push_back(row("spread", pass, {{"ranks", "8"}}, 0, Seconds(4e-3), 0.05));
  }
  return points;
}

// Whole kernels by shape; flash takes 1.25 times as long forward, cuDNN 0.8 times backward.
std::vector<Point> attention_rows() {
  std::vector<Point> points;
  const Gpu gpu = catalogue_gpu();
  for (const std::int64_t sequence : {1024, 2048, 4096, 8192}) {
    for (const bool backward : {false, true}) {
      const AttentionShape shape{1, 32, 32, sequence, 128};
      for (const auto& [method, factor] :
           {std::pair{"", 1.0}, std::pair{"flash", backward ? 1.0 : 1.25},
            std::pair{"cudnn", backward ? 0.8 : 1.0}}) {
        Point point = point_of(shape, backward);
        const double us = factor * attention_seconds(gpu, shape.attention(backward)).value() * 1e6;
        point.time_us = {us, us, us, us, 9};
        if (*method != 0) point.parameters.emplace_back("method", method);
        points.push_back(point);
      }
    }
  }
  return points;
}

// The numbers that rows may set, by the name of the curve that does.
Texts numbers_of(const Scenario& scenario) {
  const Interconnect& node = scenario.hardware->interconnect;
  const Software& software = scenario.roofline->software;
  Texts texts;
  const auto say = [&](const char* name, double value) {
    texts[name] += std::to_string(1e9 * value) + ' ';
  };
  const std::map<const char*, CollectiveKind> kinds{
      {"all_reduce", CollectiveKind::kAllReduce},
      {"all_gather", CollectiveKind::kAllGather},
      {"reduce_scatter", CollectiveKind::kReduceScatter},
      {"all_to_all", CollectiveKind::kAllToAll},
      {"send_recv", CollectiveKind::kSendReceive}};
  for (const auto& [name, kind] : kinds) {
    const Collective collective{kind, Group::kTensor, Bytes(1e8)};
    say(name, collective_seconds(node, collective, {8, 8}).value());
    say((std::string(name) + "_between_nodes").c_str(),
        collective_seconds(node, collective, {32, 8}).value());
  }
  for (const Seconds operation : software.operation) say("host_operation", operation.value());
  say("jitter",
      scenario.roofline->calibration ? scenario.roofline->calibration->jitter.value_or(0) : 0);
  const Gpu& gpu = scenario.hardware->gpu;
  say("matmul", matmul_seconds(gpu, {.m = 4096, .n = 4096, .k = 4096}).value());
  say("streaming", memory_bound_seconds(gpu, Bytes(1e9), 1).value());
  say("host", scenario.hardware->host.alone.value());
  return texts;
}

Scenario scenario_of(const std::string& cost) {
  return read_scenario(
      YamlSource((pipesim::testing::test_folder() / "scenario.yaml").string(),
                 "model: llama3-8b\ncluster: dgx-h100\nschedule: 1f1b\n"
                 "parallel: {pipeline_model_parallel_size: 4}\n"
                 "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\ncost: " +
                     cost));
}

Scenario with_rows(const std::vector<Point>& points, const std::string& more = "") {
  const auto folder = pipesim::testing::test_folder();
  std::ofstream out(folder / "measurements.csv");
  write_measurements(measured(points), out);
  out.close();
  (void)fit_folder(folder, {});
  return scenario_of("{kind: measured, file: calibration.yaml" + more + "}");
}

std::vector<std::string> changed_by(const std::vector<Point>& points) {
  const Texts before = numbers_of(scenario_of("{kind: roofline}"));
  std::vector<std::string> changed;
  for (const auto& [name, text] : numbers_of(with_rows(points))) {
    if (text != before.at(name)) changed.push_back(name);
  }
  return changed;
}

using Names = std::vector<std::string>;

TEST(Rows, OfOneKindSetTheirNumberAndNoOther) {
  EXPECT_EQ(changed_by(network_rows("all_reduce", CollectiveKind::kAllReduce)),
            Names{"all_reduce_between_nodes"});
  EXPECT_EQ(changed_by(network_rows("all_gather", CollectiveKind::kAllGather)),
            Names{"all_gather_between_nodes"});
  EXPECT_EQ(changed_by(network_rows("reduce_scatter", CollectiveKind::kReduceScatter)),
            Names{"reduce_scatter_between_nodes"});
  EXPECT_EQ(changed_by(network_rows("all_to_all", CollectiveKind::kAllToAll)),
            Names{"all_to_all_between_nodes"});
  EXPECT_EQ(changed_by(network_rows("send_recv", CollectiveKind::kSendReceive)),
            Names{"send_recv_between_nodes"});
  EXPECT_EQ(changed_by(host_rows()), Names{"host_operation"});
  EXPECT_EQ(changed_by(spread_rows()), Names{"jitter"});
}

TEST(Rows, BetweenNodesGiveCollectivesOfOtherSizesAndMoreNodes) {
  for (const auto& [name, kind] : {std::pair{"all_reduce", CollectiveKind::kAllReduce},
                                   std::pair{"all_to_all", CollectiveKind::kAllToAll}}) {
    Interconnect read = with_rows(network_rows(name, kind)).hardware->interconnect;
    read.sustained = 1;  // as alone
    for (const int nodes : {2, 8}) {
      for (const double bytes : {5e5, 2e7, 6e8}) {
        EXPECT_NEAR(between_nodes(read, kind, bytes, nodes) /
                        between_nodes(slow_network(), kind, bytes, nodes),
                    1, 0.05)
            << name << ' ' << nodes << ' ' << bytes;
      }
    }
  }
}

TEST(Rows, OfTheHostAreItsLeastSecondsByMode) {
  const auto operation = [](const Scenario& scenario, LaunchMode mode) {
    return scenario.roofline->software.operation[mode].value();
  };
  const Scenario measured = with_rows(host_rows());
  EXPECT_NEAR(operation(measured, LaunchMode::kEager), kEager.value(), 1e-8);
  EXPECT_NEAR(operation(measured, LaunchMode::kCudaGraphs), kGraphs.value(), 1e-9);
  // Nothing ran compiled: a launch is the least that it takes.
  EXPECT_NEAR(operation(measured, LaunchMode::kCompiled), kLaunch.value(), 1e-9);
  const Scenario stated =
      with_rows(host_rows(), ", software: {name: megatron-core, host: {eager: 2 us}}");
  EXPECT_NEAR(operation(stated, LaunchMode::kEager), 2e-6, 1e-12);
  const Scenario slower = with_rows(host_rows(), ", software: nanotron-2024");
  const Scenario catalogue = scenario_of("{kind: roofline, software: nanotron-2024}");
  EXPECT_DOUBLE_EQ(operation(slower, LaunchMode::kEager), operation(catalogue, LaunchMode::kEager));
}

TEST(Rows, OfAttentionByKernelAreSharesOfTheCurves) {
  const Gpu gpu = with_rows(attention_rows()).hardware->gpu;
  const auto& kernels = gpu.attention_kernels;
  EXPECT_NEAR(kernels[AttentionKernel::kFlash2][0], 1 / 1.25, 1e-3);
  EXPECT_NEAR(kernels[AttentionKernel::kFlash2][1], 1, 1e-3);
  EXPECT_NEAR(kernels[AttentionKernel::kCudnn][0], 1, 1e-3);
  EXPECT_NEAR(kernels[AttentionKernel::kCudnn][1], 1 / 0.8, 1e-3);
  // These rows do not say that PyTorch picked what has no name.
  EXPECT_EQ(
      kernels[AttentionKernel::kSdpa],
      scenario_of("{kind: roofline}").hardware->gpu.attention_kernels[AttentionKernel::kSdpa]);
}

TEST(Rows, ThatSpreadAreTheJitterOfARunThatStatesNone) {
  const auto jitter = *with_rows(spread_rows()).roofline->calibration->jitter;
  EXPECT_NEAR(jitter, 0.05 / 2.5631, 1e-3);
}

TEST(Rows, ThatSpreadByMoreThanAnyNodeAreRefused) {
  auto points = host_rows();
  points.push_back(row("spread", "F", {{"ranks", "8"}}, 0, Seconds(4e-3), 1.9));
  EXPECT_FALSE(with_rows(points).roofline->calibration->jitter);
}

}  // namespace
}  // namespace pipesim::calibration::rows_test
