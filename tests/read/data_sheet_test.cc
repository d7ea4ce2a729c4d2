// GPUs from a data sheet, and a catalogue's GPU with some numbers changed.
#include "sim/read/data_sheet.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/read/hardware.h"

namespace pipesim::hardware_test {
namespace {

const std::string kSheet =
    "{generation: hopper, peak: {bf16: 500 TFLOP/s, fp8: 1000 TFLOP/s}, memory: 64 GB, "
    "memory_bandwidth: 2 TB/s";

GpuEntry sheet(const std::string& rest) {
  const YamlSource gpus("mine.yaml", "mine: " + kSheet + rest + "}");
  return read_hardware(gpus, YamlSource("clusters.yaml", "{}"), catalog()).gpus.back();
}

TEST(DataSheet, TakesWhatItSaysAndDerivesTheRestFromItsGeneration) {
  const GpuEntry read = sheet(", link: {bandwidth: 225 GB/s, domain: 4}, power: 350 W");
  const GpuEntry& like = gpu("h100-sxm");
  EXPECT_EQ(read.gpu.like, "h100-sxm");
  EXPECT_EQ(read.gpu.peak[Precision::kFp8], FlopsPerSecond(1000e12));
  EXPECT_FALSE(read.gpu.has(Precision::kFp4));
  EXPECT_EQ(read.gpu.memory, Bytes(64e9));
  EXPECT_EQ(read.gpu.multiprocessors, 66);  // 132 x 500 / 989
  EXPECT_EQ(read.gpu.matmul.efficiency[Precision::kBf16],
            like.gpu.matmul.efficiency[Precision::kBf16]);
  EXPECT_DOUBLE_EQ(read.gpu.idle_power.value(), 35);
  EXPECT_EQ(read.domain, 4);
  EXPECT_DOUBLE_EQ(read.link->of_messages().value(), 0.844 * 225e9);
  EXPECT_DOUBLE_EQ(read.interconnect.curves[0].bandwidth.value(),
                   like.interconnect.curves[0].bandwidth.value() / 2);
  EXPECT_TRUE(read.interconnect.nvls);
  EXPECT_FALSE(sheet(", link: {bandwidth: 63 GB/s}").interconnect.nvls);
  EXPECT_FALSE(gpu("mi300x").interconnect.nvls);
  // Attention moves its bytes at the same rate.
  EXPECT_DOUBLE_EQ(read.gpu.attention[0].streaming * 2, like.gpu.attention[0].streaming * 3.35);
  for (const Sourced& number : read.numbers) {
    const bool stated = number.source == "stated, as on a data sheet";
    EXPECT_NE(stated, number.source.starts_with("assumed: ")) << number.key;
  }
}

TEST(DataSheet, OfAGpuThatIsKnownIsNearIt) {
  // The H200 from its sheet against its own fitted curves: what the spread of a generation covers.
  const YamlSource gpus("mine.yaml",
                        "mine: {generation: hopper, peak: {bf16: 989 TFLOP/s, fp8: 1979 TFLOP/s}, "
                        "memory: 140 GiB, memory_bandwidth: 4.8 TB/s, multiprocessors: 132}");
  const Gpu derived =
      read_hardware(gpus, YamlSource("clusters.yaml", "{}"), catalog()).gpus.back().gpu;
  const Gpu& own = gpu("h200-sxm").gpu;
  for (const Matmul& matmul : {Matmul{4096, 8192, 8192}, Matmul{8192, 28672, 8192}}) {
    EXPECT_NEAR(matmul_seconds(derived, matmul) / matmul_seconds(own, matmul), 1, derived.spread);
  }
}

TEST(DataSheet, IsRefusedWithWhatItLacks) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)read_hardware(YamlSource("mine.yaml", text), YamlSource("clusters.yaml", "{}"),
                          catalog());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("x: {generation: hoper}").find("did you mean 'hopper'?"), std::string::npos);
  EXPECT_NE(message("x: {generation: hopper, peak: {bf16: 1 TFLOP/s}}").find("'memory' is missing"),
            std::string::npos);
  EXPECT_NE(message("x: " + kSheet + ", sms: 3}").find("x.sms: unknown key"), std::string::npos);
}

TEST(DataSheet, StandsInAScenarioAndKeepsTheCluster) {
  const Scenario scenario =
      read("{name: dgx-h100, gpu: " + kSheet + ", link: {bandwidth: 225 GB/s}}}");
  ASSERT_TRUE(scenario.hardware);
  EXPECT_EQ(scenario.hardware->gpu.memory, Bytes(64e9));
  EXPECT_EQ(scenario.cluster->gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(scenario.cluster->link_bandwidth.value(), 0.844 * 225e9);
  EXPECT_EQ(
      read("{name: dgx-h100, gpu: " + kSheet + ", link: {domain: 16}}}").cluster->nics_per_node,
      16);
  EXPECT_NE(refusal("{name: dgx-h100, gpu: " + kSheet + ", link: {domain: 2}}}")
                .find("2 GPUs reach each other over its link, and a node has 8"),
            std::string::npos);
  EXPECT_NE(
      refusal("{network: {bandwidth: 1 GB/s}, gpu: " + kSheet + "}}").find("give cluster.name"),
      std::string::npos);
}

TEST(DataSheet, MarksWhatItSaysToBeAssumed) {
  const auto source = [](const char* name, const std::string& key) {
    const auto& numbers = gpu(name).numbers;
    return std::ranges::find(numbers, key, &Sourced::key)->source;
  };
  EXPECT_TRUE(source("h20", "chip.memory_bandwidth").starts_with("assumed: "));
  EXPECT_TRUE(source("h20", "peak.bf16").starts_with("published: "));
  EXPECT_TRUE(source("b300-sxm", "chip.multiprocessors").starts_with("assumed: "));
  EXPECT_TRUE(source("b300-sxm", "chip.memory").starts_with("published: "));
  EXPECT_NE(refusal("{name: dgx-h100, gpu: " + kSheet + ", assumed: [memry]}}").find("'memory'"),
            std::string::npos);
}

TEST(ChangedGpu, KeepsItsNameAndWhatIsNotSaid) {
  const Hardware before = *read("dgx-h100").hardware;
  const Scenario scenario = read(
      "{name: dgx-h100, gpu: {memory: 96 GB, memory_bandwidth: 4 TB/s, peak: {bf16: 800 "
      "TFLOP/s}}}");
  const Hardware& after = *scenario.hardware;
  EXPECT_EQ(after.gpu.name, "h100-sxm");
  EXPECT_EQ(after.gpu.memory, Bytes(96e9));
  EXPECT_EQ(after.gpu.memory_bandwidth, BytesPerSecond(4e12));
  EXPECT_EQ(after.gpu.peak[Precision::kBf16], FlopsPerSecond(800e12));
  EXPECT_EQ(after.gpu.peak[Precision::kFp8], before.gpu.peak[Precision::kFp8]);
  EXPECT_EQ(after.gpu.multiprocessors, before.gpu.multiprocessors);
  const Hardware restated =
      *read(
           "{name: dgx-h100, gpu: {memory: 80 GiB, peak: {bf16: 989 TFLOP/s}, "
           "memory_bandwidth: 3.35 TB/s}}")
           .hardware;
  EXPECT_EQ(restated.gpu.memory, before.gpu.memory);
  EXPECT_EQ(restated.gpu.peak, before.gpu.peak);
  EXPECT_EQ(restated.gpu.memory_bandwidth, before.gpu.memory_bandwidth);
  // Another GPU of the catalogue can be restated too.
  EXPECT_EQ(read("{name: dgx-h100, gpu: {name: h200-sxm, memory: 100 GB}}").hardware->gpu.memory,
            Bytes(100e9));
  EXPECT_NE(refusal("{name: dgx-h100, gpu: {peak: {fp4: 1 PFLOP/s}}}").find("h100-sxm has no fp4"),
            std::string::npos);
  EXPECT_NE(refusal("{name: dgx-h100, gpu: {memory: 80}}").find("has no unit"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::hardware_test
