#include "sim/read/curves.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace pipesim {
namespace {

// Above 1 where a card's power limit is above that of the one whose curve it has.
constexpr double kMostSustained = 2;

std::string stated_source(YamlMap& map) {
  return map.require("source", "where these numbers come from").text();
}

void read_matmul(NumberGroup& group, Gpu& gpu) {
  MatmulCurve& curve = gpu.matmul;
  gpu.launch = group.number("launch").seconds();
  curve.efficiency[0] = group.share("efficiency");
  curve.memory_efficiency = group.share("memory_efficiency");
  curve.fill = group.factor("fill");
  curve.edge = group.factor("edge");
  curve.split = group.factor("split");
  curve.tail = group.number("tail").number(0, 1);
  curve.slowdown = group.number("slowdown").number(0, 1);
  const YamlValue slowdown_gflop = group.number("slowdown_gflop");
  curve.slowdown_flops = Flops(slowdown_gflop.number(1e-6, 1e12) * 1e9);
  group.finish();
  if (!gpu.has(Precision::kFp8)) curve.efficiency[1] = curve.efficiency[0];
  curve.efficiency[Precision::kFp32] = curve.efficiency[0];
}

AttentionCurve read_attention(NumberGroup& group) {
  AttentionCurve curve{.efficiency = group.share("efficiency"),
                       .head_ramp = group.factor("head_ramp"),
                       .streaming = group.factor("streaming"),
                       .tail = group.number("tail").number(0, 16)};
  if (curve.streaming <= 0) group.number("streaming").fail("must be greater than 0");
  group.finish();
  return curve;
}

CollectiveCurve read_curve(NumberGroup& group) {
  return {.base = group.number("base").seconds(),
          .per_rank = group.number("per_rank").seconds(),
          .bandwidth = group.bandwidth("bandwidth"),
          .ramp = group.number("ramp").bytes(),
          .own_share = group.number("own_share").number(0, 4)};
}

}  // namespace

void put(std::vector<Sourced>& numbers, Sourced number) {
  const auto found = std::ranges::find(numbers, number.key, &Sourced::key);
  if (found == numbers.end()) {
    numbers.push_back(std::move(number));
  } else {
    *found = std::move(number);
  }
}

Seconds positive_seconds(const YamlValue& value) {
  const Seconds seconds = value.seconds();
  if (seconds <= Seconds(0)) value.fail("must be greater than 0");
  return seconds;
}

BytesPerSecond positive_bandwidth(const YamlValue& value) {
  const BytesPerSecond bandwidth = value.bandwidth();
  if (bandwidth <= BytesPerSecond(0)) value.fail("must be greater than 0");
  return bandwidth;
}

NumberGroup::NumberGroup(YamlMap& entry, const std::string& key, std::vector<Sourced>& numbers)
    : NumberGroup(entry.require(key, "a map of numbers with their source"), key, numbers) {}

NumberGroup::NumberGroup(const YamlValue& value, std::string key, std::vector<Sourced>& numbers)
    : NumberGroup(value, std::move(key), numbers, stated_source) {}

NumberGroup::NumberGroup(const YamlValue& value, std::string key, std::vector<Sourced>& numbers,
                         const SourceOf& source_of)
    : key_(std::move(key)), map_(value), numbers_(numbers), source_(source_of(map_)) {}

YamlValue NumberGroup::number(const std::string& key) {
  return noted(key, map_.require(key, "a number of this group"));
}

std::optional<YamlValue> NumberGroup::find(const std::string& key) {
  const auto found = map_.find(key);
  return found ? std::optional(noted(key, *found)) : std::nullopt;
}

YamlValue NumberGroup::noted(const std::string& key, const YamlValue& value) {
  numbers_.push_back({fmt::format("{}.{}", key_, key), value.text(), source_});
  return value;
}

void read_kernel_curves(const OpenGroup& open, Gpu& gpu) {
  if (auto matmul = open("matmul", Needed::kYes)) read_matmul(*matmul, gpu);
  if (gpu.has(Precision::kFp8)) {
    if (auto fp8 = open("matmul_fp8", Needed::kYes)) {
      gpu.matmul.efficiency[1] = fp8->share("efficiency");
      fp8->finish();
    }
  }
  if (!gpu.has(Precision::kFp4)) {
    gpu.matmul.efficiency[2] = gpu.matmul.efficiency[1];
  } else {
    if (auto fp4 = open("matmul_fp4", Needed::kYes)) {
      gpu.matmul.efficiency[2] = fp4->share("efficiency");
      fp4->finish();
    }
  }
  if (auto forward = open("attention_forward", Needed::kYes)) {
    gpu.attention[0] = read_attention(*forward);
  }
  if (auto backward = open("attention_backward", Needed::kYes)) {
    gpu.attention[1] = read_attention(*backward);
  }
  if (auto streaming = open("streaming", Needed::kYes)) {
    gpu.streaming = streaming->share("efficiency");
    streaming->finish();
  }
}

void read_attention_kernels(const OpenGroup& open, Gpu& gpu) {
  auto group = open("attention_kernels", Needed::kNo);
  if (!group) return;
  constexpr std::array<std::pair<const char*, AttentionKernel>, 5> kKernels{
      {{"flash_1", AttentionKernel::kFlash1},
       {"flash_2", AttentionKernel::kFlash2},
       {"flash_3", AttentionKernel::kFlash3},
       {"cudnn", AttentionKernel::kCudnn},
       {"sdpa", AttentionKernel::kSdpa}}};
  constexpr std::array kWays{"forward", "backward"};
  for (const auto& [name, kernel] : kKernels) {
    for (size_t way = 0; way < kWays.size(); ++way) {
      const auto share = group->find(fmt::format("{}_{}", name, kWays[way]));
      if (share) gpu.attention_kernels[kernel][way] = share->number(0, 4);
    }
  }
  group->note_fitted();
  group->finish();
}

void read_sustained(const OpenGroup& open, Gpu& gpu, Interconnect& interconnect) {
  auto group = open("sustained", Needed::kNo);
  if (!group) return;
  Sustained& sustained = gpu.sustained;
  sustained.matmul[0] = group->share("matmul");
  sustained.matmul[1] = sustained.matmul[0];
  sustained.matmul[Precision::kFp32] = sustained.matmul[0];
  if (gpu.has(Precision::kFp8)) {
    sustained.matmul[1] = group->number("matmul_fp8").number(1e-3, kMostSustained);
  }
  sustained.matmul[2] = sustained.matmul[1];
  if (const auto fp4 = group->find("matmul_fp4")) {
    sustained.matmul[2] = fp4->number(1e-3, kMostSustained);
  }
  sustained.attention = group->share("attention");
  sustained.streaming = group->share("streaming");
  sustained.unaligned = group->share("unaligned");
  interconnect.sustained = group->share("collectives");
  group->note_fitted();
  group->finish();
}

void change_sustained(YamlMap& map, const std::string& source, Gpu& gpu, Interconnect& interconnect,
                      std::vector<Sourced>& numbers) {
  Sustained& sustained = gpu.sustained;
  const auto change = [&](const char* key, double& to) {
    const auto share = map.find(key);
    if (!share) return;
    to = share->number(1e-3, kMostSustained);
    put(numbers, {std::string("sustained.") + key, share->text(), source});
  };
  if (const auto fitted = map.find("fitted")) (void)fitted->integer(0, 64);
  change("matmul", sustained.matmul[Precision::kBf16]);
  sustained.matmul[Precision::kFp32] = sustained.matmul[Precision::kBf16];
  change("matmul_fp8", sustained.matmul[Precision::kFp8]);
  change("matmul_fp4", sustained.matmul[Precision::kFp4]);
  change("attention", sustained.attention);
  change("streaming", sustained.streaming);
  change("unaligned", sustained.unaligned);
  change("collectives", interconnect.sustained);
  map.finish();
}

void read_collective_curves(const OpenGroup& open, Interconnect& interconnect) {
  static const std::array<std::string, 4> kNames{"all_reduce", "all_gather", "reduce_scatter",
                                                 "all_to_all"};  // by CollectiveKind
  for (size_t kind = 0; kind < kNames.size(); ++kind) {
    if (auto group = open(kNames[kind], Needed::kYes)) {
      interconnect.curves[kind] = read_curve(*group);
      group->finish();
    }
  }
  if (auto group = open("all_reduce_in_switch", Needed::kNo)) {
    interconnect.nvls_ranks = group->count("ranks", 1 << 16);
    interconnect.nvls = read_curve(*group);
    group->finish();
  }
}

void read_host_bandwidths(NumberGroup& group, HostLink& host) {
  host.alone = group.bandwidth("alone");
  const YamlValue duplex = group.number("duplex");
  host.duplex = positive_bandwidth(duplex);
  if (host.duplex > host.alone) duplex.fail("must not be more than alone, which shares with none");
}

}  // namespace pipesim
