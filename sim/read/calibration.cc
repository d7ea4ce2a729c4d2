#include "sim/read/calibration.h"

#include <array>
#include <chrono>
#include <fmt/format.h>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "sim/core/input_text.h"
#include "sim/read/curves.h"

namespace pipesim {
namespace {

constexpr const char* kInSwitch = "all_reduce_in_switch";
// By CollectiveKind.
constexpr std::array<const char*, 5> kNetworkCurves{
    "all_reduce_between_nodes", "all_gather_between_nodes", "reduce_scatter_between_nodes",
    "all_to_all_between_nodes", "send_recv_between_nodes"};

// The number of the digits; -1 where there is something else.
int digits(std::string_view text) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string read_day(const YamlValue& value) {
  std::string text = value.text();
  const bool written = text.size() == 10 && text[4] == '-' && text[7] == '-';
  const std::string_view all = written ? std::string_view(text) : "0000-00-00";
  const int year = digits(all.substr(0, 4));
  const int month = digits(all.substr(5, 2));
  const int day = digits(all.substr(8, 2));
  const bool is_day = year > 0 && month > 0 && day > 0 &&
                      std::chrono::year_month_day(std::chrono::year(year),
                                                  std::chrono::month(static_cast<unsigned>(month)),
                                                  std::chrono::day(static_cast<unsigned>(day)))
                          .ok();
  if (!is_day) value.fail(fmt::format("'{}' is no day; expected one as 2026-11-21", text));
  return text;
}

// "device", then what took part.
std::string read_measured(const YamlValue& value) {
  YamlMap map(value);
  std::string text = map.require("device", "the GPU as its driver names it").text();
  text += ", " + read_day(map.require("date", "the day of the measurements, as 2026-11-21"));
  text += ", driver " + map.require("driver", "the version of the GPU's driver").text();
  for (const char* library : {"cuda", "cublas", "cudnn", "nccl"}) {
    if (const auto version = map.find(library)) {
      text += fmt::format(", {} {}", library, version->text());
    }
  }
  if (const auto note = map.find("note")) text += "; " + note->text();
  map.finish();
  return text;
}

// True where the curve's rows were measured among a layer's passes, at the clocks that these leave.
bool read_under_load(YamlMap& group) {
  const auto stated = group.find("under_load");
  return stated && stated->flag();
}

// A curve that was measured under load has the clocks of training in it, so that the share of the
// catalogue's curve that training keeps is no longer asked of it. All other shares stay. Attention
// has one share for both directions, which stays until both are measured.
void drop_shares(const std::set<std::string>& under_load, Gpu& gpu, const std::string& from,
                 std::vector<Sourced>& numbers) {
  Sustained& kept = gpu.sustained;
  const auto is_one = [&](double& share, const char* key, std::initializer_list<const char*> of) {
    for (const char* curve : of) {
      if (!under_load.contains(curve)) return;
    }
    share = 1;
    put(numbers, {fmt::format("sustained.{}", key), "1", "measured under load: " + from});
  };
  is_one(kept.matmul[Precision::kBf16], "matmul", {"matmul"});
  is_one(kept.matmul[Precision::kFp8], "matmul_fp8", {"matmul_fp8"});
  is_one(kept.attention, "attention", {"attention_forward", "attention_backward"});
  is_one(kept.streaming, "streaming", {"streaming"});
  kept.matmul[Precision::kFp32] = kept.matmul[Precision::kBf16];
  if (!gpu.has(Precision::kFp4)) kept.matmul[Precision::kFp4] = kept.matmul[Precision::kFp8];
}

// Reads a curve's error against its measurements, and the spread of repeated ones.
std::string read_error(YamlMap& group, const std::string& measured) {
  YamlMap map(group.require("error", "a map with rows, median, within_90 and spread"));
  const long rows = map.require("rows", "the number of measurements").integer(1, 1L << 40);
  const auto percent = [](const YamlValue& value) { return 100 * value.number(0, 100); };
  const double median = percent(map.require("median", "the median error of the curve, as 0.032"));
  const YamlValue within_90 =
      map.require("within_90", "the error that 90% of the rows keep within");
  const double within = percent(within_90);
  if (within < median)
    within_90.fail("must not be less than median, within which half of the rows are");
  const double spread =
      percent(map.require("spread", "the median spread of repeated measurements"));
  map.finish();
  return fmt::format(
      "measured: {}; {} rows, median {:.1f}%, 90% of rows within {:.1f}%, repeated within {:.1f}%",
      measured, rows, median, within, spread);
}

void read_host(const OpenGroup& open, HostLink& host) {
  if (auto group = open("host", Needed::kNo)) {
    read_host_bandwidths(*group, host);
    group->finish();
  }
}

MessageCurve read_messages(NumberGroup& group) {
  return {.latency = group.number("latency").seconds(),
          .bandwidth = group.bandwidth("bandwidth"),
          .ramp = group.number("ramp").bytes()};
}

// Measured with `gpus` GPUs of a node at once, of which each has the file's bandwidth; the model
// has that of one of the NICs that these share.
MessageCurve read_between_nodes(NumberGroup& group, const Interconnect& interconnect) {
  const YamlValue value = group.number("gpus");
  const auto gpus = static_cast<int>(value.integer(1, 1 << 16));
  if (gpus > interconnect.gpus_per_node) {
    value.fail(fmt::format("the cluster's nodes have {} GPUs", interconnect.gpus_per_node));
  }
  const int nics = (gpus - 1) * interconnect.nics_per_node / interconnect.gpus_per_node + 1;
  MessageCurve curve = read_messages(group);
  curve.bandwidth = (1.0 * gpus / nics) * curve.bandwidth;
  group.finish();
  return curve;
}

// Messages between stages, within a node and between nodes, and collectives between nodes.
void read_messages(const OpenGroup& open, Interconnect& interconnect) {
  if (auto group = open("send_recv", Needed::kNo)) {
    interconnect.messages = read_messages(*group);
    group->finish();
  }
  for (size_t kind = 0; kind < kNetworkCurves.size(); ++kind) {
    if (auto group = open(kNetworkCurves[kind], Needed::kNo)) {
      interconnect.between_nodes[kind] = read_between_nodes(*group, interconnect);
    }
  }
}

// Numbers of no kernel: the host's time for an operation, and how far passes spread.
void read_host_and_spread(const OpenGroup& open, Calibration& calibration) {
  if (auto group = open("host_operation", Needed::kNo)) {
    for (size_t mode = 0; mode < kLaunchModes.size(); ++mode) {
      const auto seconds = group->find(kLaunchModes[mode]);
      if (!seconds) continue;
      calibration.host_operation[static_cast<LaunchMode>(mode)] = positive_seconds(*seconds);
    }
    group->finish();
  }
  if (auto group = open("jitter", Needed::kNo)) {
    calibration.jitter = group->number("sigma").number(0, 1);
    group->finish();
  }
}

// Reads the shares that passes lose to messages, copies to the host and collectives beside them. A
// cluster's own numbers take precedence over the file's.
void read_shares(const OpenGroup& open, Hardware& hardware) {
  const auto share = [&open](const char* key, double most) -> std::optional<double> {
    auto group = open(key, Needed::kNo);
    if (!group) return std::nullopt;
    const double read = group->number("share").number(0, most);
    group->finish();
    return read;
  };
  Cluster& cluster = hardware.cluster;
  const auto messages = share("compute_beside_messages", 0.5);
  if (!cluster.message_share) cluster.message_share = messages;
  const auto copies = share("compute_beside_copies", 0.5);
  if (!cluster.copy_share) cluster.copy_share = copies;
  const auto collectives = share("compute_beside_collectives", 0.95);
  if (collectives) hardware.interconnect.exchange_share = *collectives;
}

// True if the file says that the machine's switches reduce nothing.
bool is_without_switch(const std::string& key, const YamlValue& curve) {
  if (key != kInSwitch || !curve.is_scalar()) return false;
  static const std::array<std::string, 1> kNone{"none"};
  (void)curve.choice(kNone);
  return true;
}

void drop_switch(Interconnect& interconnect, std::vector<Sourced>& numbers) {
  interconnect.nvls.reset();
  std::erase_if(numbers, [](const Sourced& number) {
    return number.key.starts_with(std::string(kInSwitch) + '.');
  });
}

// Reads the parts for people: curves by size that no cost takes, layers with their curves' errors,
// and the list of points not measured.
void read_notes(YamlMap& root) {
  std::vector<Sourced> unused;
  if (const auto by_size = root.find("by_size")) {
    for (const auto& [name, curve] : by_size->entries()) {
      NumberGroup group(curve, name, unused, [](YamlMap& map) { return read_error(map, ""); });
      (void)group.number("latency").seconds();
      (void)group.bandwidth("bandwidth");
      group.finish();
    }
  }
  if (const auto layers = root.find("layers")) {
    for (const auto& [name, layer] : layers->entries()) {
      YamlMap map(layer);
      (void)map.require("measured", "the seconds of a layer's pass").seconds();
      (void)map.require("modelled", "what the curves say of it").seconds();
      (void)map.require("error", "of the model, as -0.05").number(-1, 1e6);
      (void)map.require("spread", "of repeated measurements").number(0, 1e6);
      map.finish();
    }
  }
  if (const auto not_measured = root.find("not_measured")) {
    for (const YamlValue& each : not_measured->list()) (void)each.text();
  }
}

}  // namespace

Calibration read_calibration(const YamlSource& source, Hardware& hardware,
                             std::vector<Sourced>& numbers) {
  YamlMap root(source.root());
  const YamlValue schema = root.require("schema", kCalibrationSchema);
  const std::array<std::string, 1> schemas{kCalibrationSchema};
  (void)schema.choice(schemas);
  const YamlValue gpu = root.require("gpu", "the GPU's name in the catalogue");
  if (gpu.text() != hardware.gpu.name) {
    gpu.fail(fmt::format("was measured on '{}', but cluster {} has {}", gpu.text(), hardware.name,
                         hardware.gpu.name));
  }
  Calibration calibration{
      source.name(), read_measured(root.require("measured", "a map with device, date and driver"))};
  const std::string from = fmt::format("{}, {}", calibration.file, calibration.measured);
  std::vector<Sourced> read;
  std::set<std::string> under_load;
  YamlMap curves(root.require("curves", "a map of curves"));
  const OpenGroup open = [&](const std::string& key, Needed) -> std::optional<NumberGroup> {
    const auto given = curves.find(key);
    if (!given) return std::nullopt;
    if (is_without_switch(key, *given)) {
      drop_switch(hardware.interconnect, numbers);
      read.push_back({kInSwitch, given->text(), "measured: " + from});
      return std::nullopt;
    }
    return NumberGroup(*given, key, read, [&](YamlMap& group) {
      if (read_under_load(group)) under_load.insert(key);
      return read_error(group, from);
    });
  };
  read_kernel_curves(open, hardware.gpu);
  read_attention_kernels(open, hardware.gpu);
  read_collective_curves(open, hardware.interconnect);
  read_host(open, hardware.host);
  read_messages(open, hardware.interconnect);
  read_host_and_spread(open, calibration);
  read_shares(open, hardware);
  curves.finish();
  read_notes(root);
  root.finish();
  if (read.empty()) curves.value().fail("expected at least one curve");
  drop_shares(under_load, hardware.gpu, from, numbers);
  for (Sourced& number : read) put(numbers, std::move(number));
  return calibration;
}

Calibration read_calibration_file(const YamlValue& file, const std::string& scenario_file,
                                  Hardware& hardware, std::vector<Sourced>& numbers) {
  const std::string path = file_beside(scenario_file, file.text());
  return read_calibration(YamlSource::from_file(path, file.where()), hardware, numbers);
}

}  // namespace pipesim
