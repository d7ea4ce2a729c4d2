#include "sim/read/hardware.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/curves.h"
#include "sim/read/data_sheet.h"

namespace pipesim {
namespace {

constexpr const char* kStated = "stated by the scenario";

void read_chip(YamlMap& entry, GpuEntry& into) {
  Gpu& gpu = into.gpu;
  NumberGroup peak(entry, "peak", into.numbers);
  const auto fp16 = peak.find("fp16");
  gpu.has_bf16 = !fp16;
  const YamlValue two_bytes = fp16 ? *fp16 : peak.number("bf16");
  gpu.peak[0] = two_bytes.flop_rate();
  if (const auto fp8 = peak.find("fp8")) gpu.peak[1] = fp8->flop_rate();
  if (const auto fp4 = peak.find("fp4")) gpu.peak[2] = fp4->flop_rate();
  if (const auto fp32 = peak.find("fp32")) gpu.peak[3] = fp32->flop_rate();
  if (!gpu.has(Precision::kBf16)) two_bytes.fail("must be greater than 0");
  peak.finish();
  NumberGroup chip(entry, "chip", into.numbers);
  gpu.multiprocessors = chip.count("multiprocessors", 1 << 12);
  gpu.memory = chip.number("memory").bytes();
  gpu.memory_bandwidth = chip.bandwidth("memory_bandwidth");
  if (const auto transposes = chip.find("fp8_transposes")) gpu.fp8_transposes = transposes->flag();
  chip.finish();
  NumberGroup power(entry, "power", into.numbers);
  gpu.idle_power = power.number("idle").power();
  gpu.busy_power = power.number("busy").power();
  if (gpu.busy_power < gpu.idle_power) power.number("busy").fail("must not be less than idle");
  power.finish();
}

GpuEntry read_gpu(const std::string& name, const YamlValue& value) {
  YamlMap map(value);
  GpuEntry entry;
  entry.gpu.name = name;
  entry.title = map.require("title", "the product's name").text();
  read_chip(map, entry);
  const OpenGroup open = [&](const std::string& key, Needed needed) -> std::optional<NumberGroup> {
    if (needed == Needed::kYes) return NumberGroup(map, key, entry.numbers);
    const auto given = map.find(key);
    return given ? std::optional(NumberGroup(*given, key, entry.numbers)) : std::nullopt;
  };
  read_kernel_curves(open, entry.gpu);
  read_attention_kernels(open, entry.gpu);
  read_collective_curves(open, entry.interconnect);
  read_sustained(open, entry.gpu, entry.interconnect);
  map.finish();
  return entry;
}

// Copies the cluster's numbers of GPUs and NICs to the collectives.
void agree(Hardware& hardware) {
  const Cluster& cluster = hardware.cluster;
  hardware.interconnect.gpus_per_node = cluster.gpus_per_node;
  hardware.interconnect.nics_per_node = cluster.nics_per_node;
  hardware.interconnect.nic_bandwidth = cluster.nic_bandwidth;
  hardware.interconnect.nic_latency = cluster.nic_latency;
}

// The GPU's own collectives in the place of those before; the network's part of them stays.
void take_gpu(const GpuEntry& gpu, Hardware& hardware) {
  const Interconnect& before = hardware.interconnect;
  Interconnect taken = gpu.interconnect;
  taken.nic_ramp = before.nic_ramp;
  taken.oversubscription = before.oversubscription;
  taken.nodes_per_leaf = before.nodes_per_leaf;
  hardware.gpu = gpu.gpu;
  hardware.interconnect = taken;
}

// A fat tree whose lowest switches have so many ports to nodes. Optimised for rails, each NIC of a
// node goes to a switch of its own: as many nodes stand below it as it has ports. Keys left out
// keep what is. Returns the oversubscription, where it is given.
template <class Numbers>
std::optional<YamlValue> read_tree(Numbers& network, int nics, Interconnect& wires) {
  auto over = network.find("oversubscription");
  const auto ports = network.find("leaf_ports");
  const auto rails = network.find("rail_optimised");
  const bool by_rails = rails && rails->flag();
  const bool known = wires.oversubscription > 1;
  if (!over && !known) {
    const char* why = "says nothing without oversubscription, from 1 on";
    if (ports) ports->fail(why);
    if (by_rails) rails->fail(why);
    return over;
  }
  if (known && by_rails && !ports) rails->fail("needs leaf_ports, the ports of a switch to nodes");
  if (over) wires.oversubscription = over->number(1, 1e3);
  constexpr int kPorts = 32;  // of 64, half to nodes
  const int to_nodes = ports ? static_cast<int>(ports->integer(1, 1 << 12)) : kPorts;
  if (ports || !known) wires.nodes_per_leaf = std::max(1, to_nodes / (by_rails ? 1 : nics));
  return over;
}

constexpr double kMostVariation = 0.5;

// The rate stands among the numbers of the GPU itself.
void put_link_of_gpu(const Wire& link, std::vector<Sourced>& numbers) {
  std::erase_if(numbers, [](const Sourced& each) { return each.key == "link.bandwidth"; });
  put(numbers, {"link.achieved", fmt::format("{:.4g}", link.achieved),
                "assumed: the share of a GPU's link that its generation's messages get"});
}

// Reads a cluster. A key that it leaves out comes from the cluster that it is like, or is required.
class ClusterReader {
 public:
  ClusterReader(const std::string& name, const YamlValue& value, const HardwareCatalog& catalog)
      : map_(value) {
    entry_.title = map_.require("title", "what the cluster is").text();
    const std::string title = entry_.title;
    if (const auto like = map_.find("like")) {
      entry_ = catalog.cluster(*like);
      entry_.title = title;
      given_ = true;
      for (Sourced& number : entry_.numbers) {
        number.source = fmt::format("assumed: as {}", entry_.hardware.name);
      }
    }
    entry_.hardware.name = name;
    read_gpu_of(catalog);
  }

  ClusterEntry read() {
    Hardware& hardware = entry_.hardware;
    Cluster& cluster = hardware.cluster;
    if (auto node = open("node")) {
      cluster.gpus_per_node = node->count("gpus", 1024);
      cluster.nics_per_node = node->count("nics", cluster.gpus_per_node);
      node->finish();
    }
    if (auto link = open("link")) {
      entry_.link = {link->bandwidth("bandwidth"), 1};
      cluster.link_latency = link->number("latency").seconds();
      link->finish();
    }
    if (auto network = open("network")) {
      entry_.card = {network->bandwidth("bandwidth"), network->share("achieved")};
      cluster.nic_latency = network->number("latency").seconds();
      const auto ramp = network->find("ramp");
      hardware.interconnect.nic_ramp = ramp ? ramp->bytes() : Bytes(0);
      hardware.interconnect.oversubscription = 1;
      (void)read_tree(*network, cluster.nics_per_node, hardware.interconnect);
      network->finish();
    }
    if (auto fleet = open("fleet", Needed::kNo)) {
      hardware.variation = fleet->number("variation").number(0, kMostVariation);
      fleet->finish();
    }
    cluster.link_bandwidth = entry_.link.of_messages();
    cluster.nic_bandwidth = entry_.card.of_messages();
    if (auto host = open("host")) {
      read_host_bandwidths(*host, hardware.host);
      hardware.host.gpus_per_switch = host->count("gpus_per_switch", cluster.gpus_per_node);
      hardware.host.memory = host->number("memory").bytes();
      if (const auto share = host->find("copy_share")) cluster.copy_share = share->number(0, 0.5);
      host->finish();
    }
    map_.finish();
    cluster.idle_power = hardware.gpu.idle_power;
    cluster.busy_power = hardware.gpu.busy_power;
    cluster.host_memory = hardware.host.memory;
    agree(hardware);
    return std::move(entry_);
  }

 private:
  std::optional<NumberGroup> open(const char* key, Needed needed = Needed::kYes) {
    if (!given_ && needed == Needed::kYes) return NumberGroup(map_, key, entry_.numbers);
    const auto value = map_.find(key);
    if (!value) return std::nullopt;
    std::erase_if(entry_.numbers, [&](const Sourced& each) {
      return each.key.starts_with(std::string(key) + ".");
    });
    return NumberGroup(*value, key, entry_.numbers);
  }

  void read_gpu_of(const HardwareCatalog& catalog) {
    const auto name =
        given_ ? map_.find("gpu") : map_.require("gpu", "the name of a GPU of the catalogue");
    if (!name) return;
    const GpuEntry& gpu = catalog.gpu(*name);
    take_gpu(gpu, entry_.hardware);
    if (!given_ || !gpu.link) return;
    entry_.link = *gpu.link;
    put_link_of_gpu(*gpu.link, entry_.numbers);
  }

  YamlMap map_;
  ClusterEntry entry_;
  bool given_ = false;  // by another cluster
};

// Notes what a scenario states in the place of a number.
class Changes {
 public:
  explicit Changes(std::vector<Sourced>& numbers) : numbers_(numbers) {}
  void note(const char* key, const YamlValue& value) {
    put(numbers_, {key, value.text(), kStated});
  }

 private:
  std::vector<Sourced>& numbers_;
};

// Collectives take the changed link in proportion.
void scale_links(Interconnect& interconnect, double factor, std::vector<Sourced>& numbers) {
  if (factor == 1) return;
  for (Sourced& number : numbers) {
    const bool collective = number.key.starts_with("all_") || number.key.starts_with("reduce_");
    if (!collective || !number.key.ends_with(".bandwidth")) continue;
    number.value += fmt::format(" x {:.4g}", factor);
    number.source += "; scaled as the scenario's link is to the cluster's";
  }
  for (CollectiveCurve& curve : interconnect.curves) curve.bandwidth = factor * curve.bandwidth;
  if (interconnect.nvls) interconnect.nvls->bandwidth = factor * interconnect.nvls->bandwidth;
}

// The link of a node, over that of the cluster or of its GPU.
void read_link(YamlMap& node, ClusterChoice& choice, Changes& changed) {
  const BytesPerSecond before = choice.link.bandwidth;
  if (const auto bandwidth = node.find("link_bandwidth")) {
    choice.link.bandwidth = positive_bandwidth(*bandwidth);
    changed.note("link.bandwidth", *bandwidth);
  } else if (!choice.hardware && choice.cluster.gpus_per_node > 1) {
    (void)node.require("link_bandwidth",
                       "the bandwidth between GPUs of a node, such as '300 GB/s'");
  }
  if (const auto achieved = node.find("link_achieved")) {
    choice.link.achieved = achieved->number(1e-3, 1);
    changed.note("link.achieved", *achieved);
  }
  if (const auto latency = node.find("link_latency")) {
    choice.cluster.link_latency = latency->seconds();
    changed.note("link.latency", *latency);
  }
  choice.cluster.link_bandwidth = choice.link.of_messages();
  if (!choice.hardware) return;
  scale_links(choice.hardware->interconnect, choice.link.bandwidth / before, choice.numbers);
}

// A scenario's changes; with a base nothing is required.
void read_node(YamlMap& map, ClusterChoice& choice, Changes& changed) {
  const auto node = map.find("node");
  if (!node) return;
  Cluster& cluster = choice.cluster;
  YamlMap of(*node);
  if (const auto gpus = of.find("gpus")) {
    cluster.gpus_per_node = static_cast<int>(gpus->integer(1, 1024));
    changed.note("node.gpus", *gpus);
  }
  if (const auto nics = of.find("nics")) {
    cluster.nics_per_node = static_cast<int>(nics->integer(1, cluster.gpus_per_node));
    changed.note("node.nics", *nics);
  } else if (cluster.nics_per_node > cluster.gpus_per_node) {
    node->fail(fmt::format("{} network cards for {} GPUs: give nics too", cluster.nics_per_node,
                           cluster.gpus_per_node));
  }
  read_link(of, choice, changed);
  of.finish();
}

// Messages get the base's share of a NIC's bandwidth, unless another share is stated.
void read_network(YamlMap& map, ClusterChoice& choice, Changes& changed, bool base) {
  const auto network = map.find("network");
  if (!network && base) return;
  YamlMap of(network
                 ? *network
                 : map.require("network", "a map with bandwidth and latency of a network card"));
  if (const auto bandwidth = of.find("bandwidth")) {
    choice.card.bandwidth = positive_bandwidth(*bandwidth);
    changed.note("network.bandwidth", *bandwidth);
  } else if (!base) {
    (void)of.require("bandwidth", "such as '400 Gbps'");
  }
  if (const auto achieved = of.find("achieved")) {
    choice.card.achieved = achieved->number(1e-3, 1);
    changed.note("network.achieved", *achieved);
  }
  choice.cluster.nic_bandwidth = choice.card.of_messages();
  if (const auto latency = of.find("latency")) {
    choice.cluster.nic_latency = latency->seconds();
    changed.note("network.latency", *latency);
  }
  Interconnect none;
  Interconnect& wires = choice.hardware ? choice.hardware->interconnect : none;
  if (const auto over = read_tree(of, choice.cluster.nics_per_node, wires)) {
    if (!choice.hardware) over->fail("is of collectives, which need a cluster by name");
    changed.note("network.oversubscription", *over);
  }
  of.finish();
}

// How alike the GPUs are.
void read_fleet(YamlMap& map, ClusterChoice& choice, Changes& changed) {
  const auto fleet = map.find("fleet");
  if (!fleet) return;
  YamlMap of(*fleet);
  if (const auto variation = of.find("variation")) {
    if (!choice.hardware) variation->fail("needs a cluster by name, whose GPUs have a model");
    choice.hardware->variation = variation->number(0, kMostVariation);
    changed.note("fleet.variation", *variation);
  }
  of.finish();
}

// Bandwidths make seconds of bytes only where there is a base.
void read_host(YamlMap& map, ClusterChoice& choice) {
  const auto given = map.find("host");
  if (!given) return;
  YamlMap of(*given);
  const auto changed = [&choice](const char* key, const YamlValue& value) {
    put(choice.numbers, {key, value.text(), kStated});
  };
  if (const auto memory = of.find("memory")) {
    choice.cluster.host_memory = memory->bytes();
    if (choice.hardware) choice.hardware->host.memory = memory->bytes();
    changed("host.memory", *memory);
  }
  const auto of_link = [&](const char* key) {
    auto value = of.find(key);
    if (value && !choice.hardware) value->fail("changes a cluster by name: give cluster.name");
    if (value) changed((std::string("host.") + key).c_str(), *value);
    return value;
  };
  if (const auto alone = of_link("alone")) choice.hardware->host.alone = positive_bandwidth(*alone);
  if (const auto both = of_link("duplex")) choice.hardware->host.duplex = positive_bandwidth(*both);
  if (const auto update = of_link("update")) {
    choice.hardware->host.update = positive_bandwidth(*update);
  }
  if (const auto gpus = of_link("gpus_per_switch")) {
    choice.hardware->host.gpus_per_switch =
        static_cast<int>(gpus->integer(1, choice.cluster.gpus_per_node));
  }
  if (choice.hardware && choice.hardware->host.duplex > choice.hardware->host.alone) {
    given->fail("duplex, of each direction while both are busy, must not be more than alone");
  }
  of.finish();
}

void read_power(YamlMap& gpu, Cluster& cluster) {
  if (const auto share = gpu.find("message_share")) cluster.message_share = share->number(0, 0.5);
  if (const auto share = gpu.find("copy_share")) cluster.copy_share = share->number(0, 0.5);
  if (const auto idle = gpu.find("idle_power")) {
    cluster.idle_power = idle->power();
    const YamlValue busy = gpu.require("busy_power", "the power of a GPU that computes");
    cluster.busy_power = busy.power();
    if (*cluster.busy_power < *cluster.idle_power) busy.fail("must not be less than idle_power");
  }
}

void take(const HardwareCatalog& catalog, const YamlValue& name, ClusterChoice& choice) {
  const ClusterEntry& entry = catalog.cluster(name);
  choice.hardware = entry.hardware;
  choice.cluster = entry.hardware.cluster;
  choice.numbers = entry.numbers;
  choice.link = entry.link;
  choice.card = entry.card;
}

// The GPU's numbers go before the cluster's.
void add_numbers_of_gpu(const HardwareCatalog& catalog, ClusterChoice& choice) {
  if (!choice.hardware) return;
  for (const GpuEntry& entry : catalog.gpus) {
    if (entry.gpu.name != choice.hardware->gpu.name) continue;
    choice.numbers.insert(choice.numbers.begin(), entry.numbers.begin(), entry.numbers.end());
  }
}

std::string name_of(const GpuEntry& entry) { return entry.gpu.name; }
std::string name_of(const ClusterEntry& entry) { return entry.hardware.name; }

template <class Entry>
const Entry& named(const std::vector<Entry>& entries, const YamlValue& wanted, const char* kind) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(name_of(entry));
  const std::string text = wanted.is_scalar() ? wanted.node().Scalar() : "";
  if (!text.empty() && meant_name(text, names) == text && std::ranges::count(names, text) == 0 &&
      suggested_names(text, names).empty()) {
    wanted.fail(fmt::format(
        "'{}' is not known; `pipesim list {}` prints the names, and --catalog DIR adds your own",
        text, kind));
  }
  const std::string found = wanted.choice(names);
  for (const Entry& entry : entries) {
    if (name_of(entry) == found) return entry;
  }
  throw LogicError("a name that is valid was not found");
}

// In the place of the entry of its name, or at the end.
template <class Entry>
void put_entry(std::vector<Entry>& entries, Entry entry) {
  const auto same = std::ranges::find_if(
      entries, [&](const Entry& each) { return name_of(each) == name_of(entry); });
  if (same == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *same = std::move(entry);
  }
}

// Read once.
const std::vector<Generation>& generations() {
  static const std::vector<Generation> kGenerations = [] {
    const std::string path = data_folder("catalog") + "/generations.yaml";
    return read_generations(YamlSource::from_file(path, {path, 0, 0, ""}));
  }();
  return kGenerations;
}

// A GPU in the place of a cluster's: by name, or as its data sheet says.
void replace_gpu(const GpuEntry& gpu, ClusterChoice& choice) {
  Hardware& hardware = *choice.hardware;
  take_gpu(gpu, hardware);
  choice.cluster.idle_power = gpu.gpu.idle_power;
  choice.cluster.busy_power = gpu.gpu.busy_power;
  if (!gpu.link) return;
  choice.link = *gpu.link;
  choice.cluster.link_bandwidth = gpu.link->of_messages();
  put_link_of_gpu(*gpu.link, choice.numbers);
}

std::optional<int> stated_gpus(YamlMap& map) {
  const auto node = map.find("node");
  const auto gpus = node && node->is_map() ? YamlMap(*node).find("gpus") : std::nullopt;
  return gpus ? std::optional(static_cast<int>(gpus->integer(1, 1024))) : std::nullopt;
}

// The node of a GPU from its data sheet: as many GPUs as the scenario says, or reach each other,
// with network cards in proportion.
void settle_node(const GpuEntry& gpu, const YamlValue& where, YamlMap& map, ClusterChoice& choice) {
  Cluster& cluster = choice.cluster;
  if (!gpu.domain) return;
  const auto stated = stated_gpus(map);
  if (!stated && *gpu.domain < cluster.gpus_per_node) {
    where.fail(fmt::format(
        "{} GPUs reach each other over its link, and a node has {}: give the rate that all of a "
        "node have, over PCIe, and their number as the domain, or cluster.node",
        *gpu.domain, cluster.gpus_per_node));
  }
  const int gpus = stated.value_or(*gpu.domain);
  cluster.nics_per_node = std::max(1, cluster.nics_per_node * gpus / cluster.gpus_per_node);
  cluster.gpus_per_node = gpus;
}

// The scenario's GPU, and its numbers.
void read_own_gpu(YamlMap& map, const HardwareCatalog& catalog, ClusterChoice& choice) {
  constexpr const char* kOfName =
      "changes the GPU of a cluster of the catalogue: give cluster.name";
  std::optional<Hardware>& hardware = choice.hardware;
  const auto gpu = map.find("gpu");
  if (gpu && is_data_sheet(*gpu)) {
    if (!hardware) gpu->fail(kOfName);
    const GpuEntry sheet = read_data_sheet("data sheet", *gpu, generations(), catalog.gpus);
    replace_gpu(sheet, choice);
    settle_node(sheet, *gpu, map, choice);
    for (const Sourced& number : sheet.numbers) put(choice.numbers, number);
    return;
  }
  std::vector<Sourced> changed;
  if (gpu) {
    YamlMap of(*gpu);
    if (const auto name = of.find("name")) {
      if (!hardware) name->fail(kOfName);
      replace_gpu(catalog.gpu(*name), choice);
    }
    if (hardware) change_gpu(of, hardware->gpu, hardware->interconnect, changed);
    read_power(of, choice.cluster);
    of.finish();
  }
  add_numbers_of_gpu(catalog, choice);
  for (const Sourced& number : changed) put(choice.numbers, number);
}

}  // namespace

const GpuEntry& HardwareCatalog::gpu(const YamlValue& name) const {
  return named(gpus, name, "gpus");
}

const ClusterEntry& HardwareCatalog::cluster(const YamlValue& name) const {
  return named(clusters, name, "clusters");
}

HardwareCatalog read_hardware(const YamlSource& gpus, const YamlSource& clusters,
                              HardwareCatalog known) {
  const auto entries = gpus.root().entries();
  for (const auto& [name, value] : entries) {
    if (!is_data_sheet(value)) put_entry(known.gpus, read_gpu(name, value));
  }
  for (const auto& [name, value] : entries) {
    if (!is_data_sheet(value)) continue;
    put_entry(known.gpus, read_data_sheet(name, value, generations(), known.gpus));
  }
  for (const auto& [name, value] : clusters.root().entries()) {
    put_entry(known.clusters, ClusterReader(name, value, known).read());
  }
  return known;
}

ClusterChoice read_cluster(const YamlValue& value) {
  // Read once: a sweep reads thousands of scenarios.
  const auto from_catalog = [](const YamlValue& name) -> const HardwareCatalog& {
    static const HardwareCatalog kAll = read_all_hardware(name.where());
    return kAll;
  };
  ClusterChoice choice;
  if (value.is_scalar()) {
    const HardwareCatalog& catalog = from_catalog(value);
    take(catalog, value, choice);
    add_numbers_of_gpu(catalog, choice);
    return choice;
  }
  YamlMap map(value);
  static const HardwareCatalog kNone;
  const HardwareCatalog* catalog = &kNone;
  if (const auto name = map.find("name")) {
    catalog = &from_catalog(*name);
    take(*catalog, *name, choice);
  }
  std::optional<Hardware>& hardware = choice.hardware;
  read_own_gpu(map, *catalog, choice);
  Changes changed(choice.numbers);
  read_node(map, choice, changed);
  read_network(map, choice, changed, hardware.has_value());
  read_fleet(map, choice, changed);
  read_host(map, choice);
  map.finish();
  if (hardware) {
    hardware->cluster = choice.cluster;
    agree(*hardware);
  }
  return choice;
}

}  // namespace pipesim
