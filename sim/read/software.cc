#include "sim/read/software.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "sim/core/data_folder.h"
#include "sim/read/curves.h"

namespace pipesim {
namespace {

template <class Enum, size_t N>
Enum one_of(const YamlValue& value, const std::array<const char*, N>& names) {
  const std::vector<std::string> all(names.begin(), names.end());
  return static_cast<Enum>(std::ranges::find(all, value.choice(all)) - all.begin());
}

double share(const YamlValue& value) { return value.number(1e-3, 1); }
double factor(const YamlValue& value) { return value.number(0, 1e6); }

// A number of the catalogue, and where it goes.
struct SoftwareNumber {
  const char* group;
  const char* key;
  void (*set)(const YamlValue&, Release&);
  bool needed = true;
};
using enum LaunchMode;

// Numbers of one group stand together.
constexpr std::array kNumbers{
    SoftwareNumber{"host", "launch",
                   [](const YamlValue& value, Release& of) { of.launch = launch_mode_of(value); }},
    SoftwareNumber{
        "host", "eager",
        [](const YamlValue& value, Release& of) { of.operation[kEager] = value.seconds(); }},
    SoftwareNumber{
        "host", "compiled",
        [](const YamlValue& value, Release& of) { of.operation[kCompiled] = value.seconds(); }},
    SoftwareNumber{
        "host", "cuda_graphs",
        [](const YamlValue& value, Release& of) { of.operation[kCudaGraphs] = value.seconds(); }},
    SoftwareNumber{"kernels", "traffic",
                   [](const YamlValue& value, Release& of) { of.traffic[kEager] = factor(value); }},
    SoftwareNumber{
        "kernels", "traffic_compiled",
        [](const YamlValue& value, Release& of) { of.traffic[kCompiled] = factor(value); }},
    SoftwareNumber{"kernels", "gap",
                   [](const YamlValue& value, Release& of) { of.gap = value.seconds(); }},
    SoftwareNumber{"kernels", "gradient",
                   [](const YamlValue& value, Release& of) { of.gradient = factor(value); }},
    SoftwareNumber{"step", "bucket",
                   [](const YamlValue& value, Release& of) { of.bucket = value.number(0, 1e12); }},
    SoftwareNumber{"step", "broadcast",
                   [](const YamlValue& value, Release& of) { of.broadcast = value.seconds(); }},
    SoftwareNumber{"recompute", "early_stop",
                   [](const YamlValue& value, Release& of) { of.early_stop = value.flag(); }},
    SoftwareNumber{"attention", "kernel",
                   [](const YamlValue& value, Release& of) { of.attention = attention_of(value); }},
    SoftwareNumber{
        "vocabulary", "beside",
        [](const YamlValue& value, Release& of) { of.beside_vocabulary = share(value); }},
    SoftwareNumber{
        "vocabulary", "token_forward",
        [](const YamlValue& value, Release& of) { of.vocabulary_token[0] = value.seconds(); }},
    SoftwareNumber{
        "vocabulary", "token_backward",
        [](const YamlValue& value, Release& of) { of.vocabulary_token[1] = value.seconds(); }},
    SoftwareNumber{"experts", "permuting",
                   [](const YamlValue& value, Release& of) { of.permuting = factor(value); }},
    SoftwareNumber{"experts", "biases",
                   [](const YamlValue& value, Release& of) { of.biases = factor(value); }},
    SoftwareNumber{"experts", "grouped",
                   [](const YamlValue& value, Release& of) { of.grouped = share(value); }},
    SoftwareNumber{"experts", "fullest",
                   [](const YamlValue& value, Release& of) { of.fullest = value.number(1, 1e3); }},
    SoftwareNumber{"experts", "exchange",
                   [](const YamlValue& value, Release& of) { of.exchange = share(value); }},
    SoftwareNumber{"experts", "routing",
                   [](const YamlValue& value, Release& of) { of.routing = value.seconds(); }},
    SoftwareNumber{"experts", "deepep",
                   [](const YamlValue& value, Release& of) { of.deepep = value.number(0, 1); }},
    SoftwareNumber{"experts", "quantizing",
                   [](const YamlValue& value, Release& of) { of.quantizing = value.seconds(); }},
    SoftwareNumber{"memory", "margin",
                   [](const YamlValue& value, Release& of) { of.memory_margin = value.bytes(); }},
    SoftwareNumber{"memory", "low",
                   [](const YamlValue& value, Release& of) { of.memory_band.low = share(value); }},
    SoftwareNumber{
        "memory", "high",
        [](const YamlValue& value, Release& of) { of.memory_band.high = value.number(1, 10); }},
    SoftwareNumber{
        "memory", "loss",
        [](const YamlValue& value, Release& of) { of.loss_bytes[0] = value.number(4, 100); },
        false},
    SoftwareNumber{
        "memory", "fused_loss",
        [](const YamlValue& value, Release& of) { of.loss_bytes[1] = value.number(4, 100); },
        false},
    SoftwareNumber{
        "memory", "gradient_copy",
        [](const YamlValue& value, Release& of) { of.gradient_copy = value.number(0, 4); }, false},
    SoftwareNumber{"memory", "keeps_gathered",
                   [](const YamlValue& value, Release& of) { of.keeps_gathered = value.flag(); },
                   false},
};

// Calls `each` with the numbers of every group.
template <class Each>
void by_group(const Each& each) {
  for (auto first = kNumbers.begin(); first != kNumbers.end();) {
    const std::string_view group = first->group;
    const auto last = std::find_if(
        first, kNumbers.end(), [&](const SoftwareNumber& number) { return group != number.group; });
    each(std::string(group), std::span(first, last));
    first = last;
  }
}

SoftwareEntry read_generation(const std::string& name, const YamlValue& value) {
  YamlMap map(value);
  SoftwareEntry entry;
  entry.software.name = name;
  entry.title = map.require("title", "which releases of which framework").text();
  by_group([&](const std::string& key, std::span<const SoftwareNumber> numbers) {
    NumberGroup group(map, key, entry.numbers);
    for (const SoftwareNumber& number : numbers) {
      const auto given = number.needed ? group.number(number.key) : group.find(number.key);
      if (given) number.set(*given, entry.software);
    }
    group.note_fitted();
    group.finish();
  });
  map.finish();
  return entry;
}

}  // namespace

AttentionKernel attention_of(const YamlValue& value) {
  return one_of<AttentionKernel>(value, kAttentionKernels);
}

LaunchMode launch_mode_of(const YamlValue& value) {
  return one_of<LaunchMode>(value, kLaunchModes);
}

Release read_software(const YamlValue& value) {
  if (!value.is_map()) return find_software(value).software;
  YamlMap map(value);
  Release software =
      find_software(map.require("name", "a generation whose other numbers hold")).software;
  by_group([&](const std::string& key, std::span<const SoftwareNumber> numbers) {
    const auto group = map.find(key);
    if (!group) return;
    YamlMap given(*group);
    for (const SoftwareNumber& number : numbers) {
      if (const auto value_of = given.find(number.key)) number.set(*value_of, software);
    }
    given.finish();
  });
  map.finish();
  return software;
}

std::vector<SoftwareEntry> read_software_catalogue(const YamlValue& root) {
  std::vector<SoftwareEntry> all;
  for (const auto& [name, value] : root.entries()) all.push_back(read_generation(name, value));
  if (all.empty()) root.fail("expected a generation at least");
  return all;
}

const std::vector<SoftwareEntry>& catalogue_software() {
  static const std::vector<SoftwareEntry> kAll = [] {
    const std::string path = data_folder("catalog") + "/software.yaml";
    return read_software_catalogue(YamlSource::from_file(path, {path, 0, 0, ""}).root());
  }();
  return kAll;
}

const SoftwareEntry& find_software(const YamlValue& name) {
  const auto& all = catalogue_software();
  std::vector<std::string> names;
  for (const SoftwareEntry& entry : all) names.push_back(entry.software.name);
  const auto found = std::ranges::find(names, name.choice(names));
  return all[found - names.begin()];
}

}  // namespace pipesim
