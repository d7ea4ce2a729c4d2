#include "sim/read/data_sheet.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/read/curves.h"

namespace pipesim {
namespace {

class DataSheet {
 public:
  DataSheet(const std::string& name, const YamlValue& value, const Generation& generation,
            const GpuEntry& like)
      : map_(value), generation_(generation), like_(like), entry_(like) {
    entry_.gpu.name = name;
    entry_.gpu.like = like.gpu.name;
    entry_.gpu.spread = generation.spread;
    entry_.title = name;
    if (const auto title = map_.find("title")) entry_.title = title->text();
    if (const auto source = map_.find("source")) source_ = source->text();
    if (const auto assumed = map_.find("assumed")) {
      for (const YamlValue& key : assumed->list()) assumed_.push_back(key.choice(kKeys));
    }
    for (Sourced& number : entry_.numbers) {
      number.source =
          fmt::format("assumed: as {}, of the generation {}", like.gpu.name, generation.name);
    }
  }

  GpuEntry read() {
    (void)map_.find("generation");
    peaks();
    chip();
    link();
    power();
    sustained();
    map_.finish();
    return std::move(entry_);
  }

 private:
  // Notes a number of the sheet, by its key in the sheet and its name everywhere.
  void given(const std::string& key, const std::string& named, const YamlValue& value) {
    const bool assumed = std::ranges::find(assumed_, key) != assumed_.end();
    put(entry_.numbers, {named, value.text(), (assumed ? "assumed: " : "") + source_});
  }
  void assume(const std::string& key, std::string value, const std::string& why) {
    put(entry_.numbers, {key, std::move(value), "assumed: " + why});
  }

  void peaks() {
    YamlMap of(
        map_.require("peak", "a map with bf16 (or fp16), and fp8, fp4 and fp32 where it has them"));
    Gpu& gpu = entry_.gpu;
    gpu.peak = {};
    std::erase_if(entry_.numbers,
                  [](const Sourced& each) { return each.key.starts_with("peak."); });
    const auto take = [&](const char* key, Precision precision) {
      const auto value = of.find(key);
      if (!value) return;
      gpu.peak[precision] = value->flop_rate();
      if (gpu.peak[precision] <= FlopsPerSecond(0)) value->fail("expected a rate above 0");
      const std::string named = fmt::format("peak.{}", key);
      given(named, named, *value);
    };
    gpu.has_bf16 = !of.find("fp16");
    take(gpu.has_bf16 ? "bf16" : "fp16", Precision::kBf16);
    take("fp8", Precision::kFp8);
    take("fp4", Precision::kFp4);
    take("fp32", Precision::kFp32);
    if (!gpu.has(Precision::kBf16)) (void)of.require("bf16", "a dense rate such as '989 TFLOP/s'");
    if (!gpu.has(Precision::kBf16)) of.value().fail("bf16 must be greater than 0");
    of.finish();
    for (double& share : gpu.matmul.efficiency) share = generation_.kernels * share;
    for (AttentionCurve& curve : gpu.attention) curve.efficiency *= generation_.kernels;
    for (const Precision precision : {Precision::kFp8, Precision::kFp4}) {
      if (gpu.has(precision) && !like_.gpu.has(precision)) {
        gpu.matmul.efficiency[precision] = gpu.matmul.efficiency[Precision::kBf16];
        gpu.sustained.matmul[precision] = gpu.sustained.matmul[Precision::kBf16];
      }
    }
    if (generation_.kernels == 1) return;
    for (const char* key : {"matmul.efficiency", "matmul_fp8.efficiency", "matmul_fp4.efficiency",
                            "attention_forward.efficiency", "attention_backward.efficiency"}) {
      scale(key, generation_.kernels);
    }
  }

  void scale(const std::string& key, double factor) {
    for (Sourced& number : entry_.numbers) {
      if (number.key == key) number.value += fmt::format(" x {:.4g}", factor);
    }
  }

  void chip() {
    Gpu& gpu = entry_.gpu;
    const YamlValue memory = map_.require("memory", "its size, such as '80 GB'");
    gpu.memory = memory.bytes();
    if (gpu.memory <= Bytes(0)) memory.fail("expected more than no memory");
    given("memory", "chip.memory", memory);
    const YamlValue bandwidth = map_.require("memory_bandwidth", "such as '3.35 TB/s'");
    gpu.memory_bandwidth = positive_bandwidth(bandwidth);
    given("memory_bandwidth", "chip.memory_bandwidth", bandwidth);
    // Attention moves its bytes at the same rate.
    const double wider = gpu.memory_bandwidth / like_.gpu.memory_bandwidth;
    for (AttentionCurve& curve : gpu.attention) curve.streaming /= wider;
    for (const char* key : {"attention_forward.streaming", "attention_backward.streaming"}) {
      scale(key, 1 / wider);
    }
    if (const auto number = map_.find("multiprocessors")) {
      gpu.multiprocessors = static_cast<int>(number->integer(1, 1 << 12));
      given("multiprocessors", "chip.multiprocessors", *number);
    } else {
      const double share = gpu.peak[Precision::kBf16] / like_.gpu.peak[Precision::kBf16];
      gpu.multiprocessors = std::max(1, static_cast<int>(share * like_.gpu.multiprocessors));
      assume("chip.multiprocessors", fmt::format("{}", gpu.multiprocessors),
             fmt::format("{}'s in proportion of the bf16 peaks", like_.gpu.name));
    }
  }

  void link() {
    BytesPerSecond nominal = generation_.link;
    int domain = 8;
    std::optional<YamlMap> of;
    if (const auto value = map_.find("link")) of.emplace(*value);
    const auto rate = of ? of->find("bandwidth") : std::nullopt;
    if (rate) {
      nominal = positive_bandwidth(*rate);
      given("link.bandwidth", "link.bandwidth", *rate);
    } else {
      assume("link.bandwidth", fmt::format("{:g} GB/s", nominal.value() / 1e9),
             fmt::format("as the generation {}", generation_.name));
    }
    const auto ranks = of ? of->find("domain") : std::nullopt;
    if (ranks) {
      domain = static_cast<int>(ranks->integer(1, 1024));
      given("link.domain", "link.domain", *ranks);
    } else {
      assume("link.domain", "8", "a node of eight");
    }
    if (of) of->finish();
    const double factor = generation_.collectives * (nominal / generation_.link);
    Interconnect& collectives = entry_.interconnect;
    for (CollectiveCurve& curve : collectives.curves) curve.bandwidth = factor * curve.bandwidth;
    if (!generation_.in_switch || nominal < 0.5 * generation_.link) {
      collectives.nvls.reset();
      std::erase_if(entry_.numbers, [](const Sourced& each) {
        return each.key.starts_with("all_reduce_in_switch.");
      });
    }
    if (collectives.nvls) collectives.nvls->bandwidth = factor * collectives.nvls->bandwidth;
    for (Sourced& number : entry_.numbers) {
      const bool curve = number.key.starts_with("all_") || number.key.starts_with("reduce_");
      if (curve && number.key.ends_with(".bandwidth")) scale(number.key, factor);
    }
    entry_.domain = domain;
    entry_.link = Wire{nominal, generation_.message};
  }

  void power() {
    Gpu& gpu = entry_.gpu;
    const auto busy = map_.find("power");
    if (!busy) return;
    gpu.busy_power = busy->power();
    if (gpu.busy_power <= Watts(0)) busy->fail("expected a power above 0");
    given("power", "power.busy", *busy);
    if (like_.gpu.busy_power <= Watts(0)) return;
    const double share = gpu.busy_power / like_.gpu.busy_power;
    gpu.idle_power = share * like_.gpu.idle_power;
    assume("power.idle", fmt::format("{:.0f} W", gpu.idle_power.value()),
           fmt::format("{}'s share of its limit", like_.gpu.name));
  }

  // A card has its own where training on it is known; else those of the one that it is like.
  void sustained() {
    const auto group = map_.find("sustained");
    if (!group) return;
    YamlMap of(*group);
    const std::string source = of.require("source", "where these numbers come from").text();
    change_sustained(of, source, entry_.gpu, entry_.interconnect, entry_.numbers);
  }

  // Keys that `assumed` may name.
  inline static const std::vector<std::string> kKeys{
      "peak.bf16",        "peak.fp16",       "peak.fp8",       "peak.fp4",    "peak.fp32", "memory",
      "memory_bandwidth", "multiprocessors", "link.bandwidth", "link.domain", "power"};

  YamlMap map_;
  const Generation& generation_;
  const GpuEntry& like_;
  GpuEntry entry_;
  std::string source_ = "stated, as on a data sheet";
  std::vector<std::string> assumed_;
};

template <class Entry, class Name>
const Entry& entry_named(std::span<const Entry> entries, const YamlValue& wanted,
                         const Name& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(name(entry));
  const std::string found = wanted.choice(names);
  return entries[static_cast<size_t>(std::ranges::find(names, found) - names.begin())];
}

}  // namespace

std::vector<Generation> read_generations(const YamlSource& source) {
  std::vector<Generation> generations;
  for (const auto& [name, value] : source.root().entries()) {
    std::vector<Sourced> numbers;
    NumberGroup group(value, name, numbers);
    Generation generation{.name = name, .like = group.number("like").text()};
    generation.kernels = group.share("kernels");
    generation.link = group.bandwidth("link");
    generation.collectives = group.share("collectives");
    generation.message = group.share("message");
    generation.in_switch = group.number("in_switch").flag();
    generation.spread = group.share("spread");
    group.finish();
    generations.push_back(std::move(generation));
  }
  return generations;
}

bool is_data_sheet(const YamlValue& value) {
  return value.is_map() && YamlMap(value).find("generation").has_value();
}

void change_gpu(YamlMap& of, Gpu& gpu, Interconnect& interconnect, std::vector<Sourced>& changed) {
  if (const auto sustained = of.find("sustained")) {
    YamlMap shares(*sustained);
    change_sustained(shares, "stated by the scenario", gpu, interconnect, changed);
  }
  const auto note = [&changed](const std::string& key, const YamlValue& value) {
    changed.push_back({key, value.text(), "stated by the scenario"});
  };
  if (const auto memory = of.find("memory")) {
    gpu.memory = memory->bytes();
    if (gpu.memory <= Bytes(0)) memory->fail("expected more than no memory");
    note("chip.memory", *memory);
  }
  if (const auto bandwidth = of.find("memory_bandwidth")) {
    gpu.memory_bandwidth = positive_bandwidth(*bandwidth);
    note("chip.memory_bandwidth", *bandwidth);
  }
  const auto peak = of.find("peak");
  if (!peak) return;
  YamlMap rates(*peak);
  const std::array<std::pair<const char*, Precision>, 4> keys{
      {{gpu.has_bf16 ? "bf16" : "fp16", Precision::kBf16},
       {"fp8", Precision::kFp8},
       {"fp4", Precision::kFp4},
       {"fp32", Precision::kFp32}}};
  for (const auto& [key, precision] : keys) {
    const auto rate = rates.find(key);
    if (!rate) continue;
    if (!gpu.has(precision)) {
      rate->fail(
          fmt::format("{} has no {}: a GPU that has needs its generation too", gpu.name, key));
    }
    gpu.peak[precision] = rate->flop_rate();
    if (!gpu.has(precision)) rate->fail("expected a rate above 0");
    note(fmt::format("peak.{}", key), *rate);
  }
  rates.finish();
}

GpuEntry read_data_sheet(const std::string& name, const YamlValue& value,
                         std::span<const Generation> generations, std::span<const GpuEntry> known) {
  YamlMap map(value);
  const YamlValue wanted = map.require("generation", "the name of a generation, such as 'hopper'");
  const Generation& generation =
      entry_named(generations, wanted, [](const Generation& each) { return each.name; });
  const auto like = std::ranges::find(known, generation.like,
                                      [](const GpuEntry& entry) { return entry.gpu.name; });
  if (like == known.end()) {
    wanted.fail(fmt::format("is like {}, which the catalogue has not", generation.like));
  }
  return DataSheet(name, value, generation, *like).read();
}

}  // namespace pipesim
