#include "sim/read/hardware.h"

#include <fmt/format.h>
#include <utility>

#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/curves.h"

namespace pipesim {
namespace {

constexpr const char* kStated = "stated by the scenario";

void read_chip(YamlMap& entry, GpuEntry& into) {
  Gpu& gpu = into.gpu;
  NumberGroup peak(entry, "peak", into.numbers);
  gpu.peak[0] = peak.number("bf16").flop_rate();
  if (const auto fp8 = peak.find("fp8")) gpu.peak[1] = fp8->flop_rate();
  if (const auto fp4 = peak.find("fp4")) gpu.peak[2] = fp4->flop_rate();
  if (!gpu.has(Precision::kBf16)) peak.number("bf16").fail("must be greater than 0");
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
  read_collective_curves(open, entry.interconnect);
  read_sustained(open, entry.gpu, entry.interconnect);
  map.finish();
  return entry;
}

// What the collectives and the GPU's power know from elsewhere in the same hardware.
void agree(Hardware& hardware) {
  const Cluster& cluster = hardware.cluster;
  hardware.interconnect.gpus_per_node = cluster.gpus_per_node;
  hardware.interconnect.nics_per_node = cluster.nics_per_node;
  hardware.interconnect.nic_bandwidth = cluster.nic_bandwidth;
  hardware.interconnect.nic_latency = cluster.nic_latency;
}

ClusterEntry read_entry(const std::string& name, const YamlValue& value,
                        const HardwareCatalog& catalog) {
  YamlMap map(value);
  ClusterEntry entry;
  entry.title = map.require("title", "what the cluster is").text();
  Hardware& hardware = entry.hardware;
  hardware.name = name;
  const GpuEntry& gpu = catalog.gpu(map.require("gpu", "the name of a GPU of the catalogue"));
  hardware.gpu = gpu.gpu;
  hardware.interconnect = gpu.interconnect;
  Cluster& cluster = hardware.cluster;
  NumberGroup node(map, "node", entry.numbers);
  cluster.gpus_per_node = node.count("gpus", 1024);
  cluster.nics_per_node = node.count("nics", cluster.gpus_per_node);
  node.finish();
  NumberGroup link(map, "link", entry.numbers);
  cluster.link_bandwidth = link.bandwidth("bandwidth");
  cluster.link_latency = link.number("latency").seconds();
  link.finish();
  NumberGroup network(map, "network", entry.numbers);
  entry.card_achieved = network.share("achieved");
  entry.card_bandwidth = network.bandwidth("bandwidth");
  cluster.nic_bandwidth = entry.card_achieved * entry.card_bandwidth;
  cluster.nic_latency = network.number("latency").seconds();
  network.finish();
  NumberGroup host(map, "host", entry.numbers);
  read_host_bandwidths(host, hardware.host);
  hardware.host.gpus_per_switch = host.count("gpus_per_switch", cluster.gpus_per_node);
  hardware.host.memory = host.number("memory").bytes();
  host.finish();
  map.finish();
  cluster.idle_power = hardware.gpu.idle_power;
  cluster.busy_power = hardware.gpu.busy_power;
  cluster.host_memory = hardware.host.memory;
  agree(hardware);
  return entry;
}

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

// A scenario's changes; with a base nothing is required.
void read_node(YamlMap& map, Cluster& cluster, Changes& changed, bool base) {
  const auto node = map.find("node");
  if (!node) return;
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
  if (const auto bandwidth = of.find("link_bandwidth")) {
    cluster.link_bandwidth = positive_bandwidth(*bandwidth);
    changed.note("link.bandwidth", *bandwidth);
  } else if (!base && cluster.gpus_per_node > 1) {
    (void)of.require("link_bandwidth", "the bandwidth between GPUs of a node, such as '300 GB/s'");
  }
  if (const auto latency = of.find("link_latency")) {
    cluster.link_latency = latency->seconds();
    changed.note("link.latency", *latency);
  }
  of.finish();
}

// What messages get of a card that is not the base's is the base's share, unless it is stated.
void read_network(YamlMap& map, ClusterChoice& choice, Changes& changed, bool base) {
  const auto network = map.find("network");
  if (!network && base) return;
  YamlMap of(network
                 ? *network
                 : map.require("network", "a map with bandwidth and latency of a network card"));
  if (const auto bandwidth = of.find("bandwidth")) {
    choice.card_bandwidth = positive_bandwidth(*bandwidth);
    changed.note("network.bandwidth", *bandwidth);
  } else if (!base) {
    (void)of.require("bandwidth", "such as '400 Gbps'");
  }
  if (const auto achieved = of.find("achieved")) {
    choice.card_achieved = achieved->number(1e-3, 1);
    changed.note("network.achieved", *achieved);
  }
  choice.cluster.nic_bandwidth = choice.card_achieved * choice.card_bandwidth;
  if (const auto latency = of.find("latency")) {
    choice.cluster.nic_latency = latency->seconds();
    changed.note("network.latency", *latency);
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
  if (const auto idle = gpu.find("idle_power")) {
    cluster.idle_power = idle->power();
    const YamlValue busy = gpu.require("busy_power", "the power of a GPU that computes");
    cluster.busy_power = busy.power();
    if (*cluster.busy_power < *cluster.idle_power) busy.fail("must not be less than idle_power");
  }
}

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

void take(const HardwareCatalog& catalog, const YamlValue& name, ClusterChoice& choice) {
  const ClusterEntry& entry = catalog.cluster(name);
  choice.hardware = entry.hardware;
  choice.cluster = entry.hardware.cluster;
  choice.numbers = entry.numbers;
  choice.card_bandwidth = entry.card_bandwidth;
  choice.card_achieved = entry.card_achieved;
}

// The GPU's numbers go before the cluster's.
void add_numbers_of_gpu(const HardwareCatalog& catalog, ClusterChoice& choice) {
  if (!choice.hardware) return;
  for (const GpuEntry& entry : catalog.gpus) {
    if (entry.gpu.name != choice.hardware->gpu.name) continue;
    choice.numbers.insert(choice.numbers.begin(), entry.numbers.begin(), entry.numbers.end());
  }
}

template <class Entry, class Name>
const Entry& named(const std::vector<Entry>& entries, const YamlValue& wanted, const Name& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(name(entry));
  const std::string found = wanted.choice(names);
  for (const Entry& entry : entries) {
    if (name(entry) == found) return entry;
  }
  throw LogicError("a name that is valid was not found");
}

}  // namespace

const GpuEntry& HardwareCatalog::gpu(const YamlValue& name) const {
  return named(gpus, name, [](const GpuEntry& entry) { return entry.gpu.name; });
}

const ClusterEntry& HardwareCatalog::cluster(const YamlValue& name) const {
  return named(clusters, name, [](const ClusterEntry& entry) { return entry.hardware.name; });
}

HardwareCatalog read_hardware(const YamlSource& gpus, const YamlSource& clusters) {
  HardwareCatalog catalog;
  for (const auto& [name, value] : gpus.root().entries()) {
    catalog.gpus.push_back(read_gpu(name, value));
  }
  for (const auto& [name, value] : clusters.root().entries()) {
    catalog.clusters.push_back(read_entry(name, value, catalog));
  }
  return catalog;
}

HardwareCatalog read_hardware_folder(const std::string& folder, const Location& asked) {
  const YamlSource gpus = YamlSource::from_file(folder + "/gpus.yaml", asked);
  return read_hardware(gpus, YamlSource::from_file(folder + "/clusters.yaml", asked));
}

ClusterChoice read_cluster(const YamlValue& value) {
  // Read once: a sweep reads thousands of scenarios.
  const auto from_catalog = [](const YamlValue& name) -> const HardwareCatalog& {
    static const HardwareCatalog kShipped =
        read_hardware_folder(data_folder("catalog"), name.where());
    return kShipped;
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
  const BytesPerSecond link = choice.cluster.link_bandwidth;
  Changes changed(choice.numbers);
  read_node(map, choice.cluster, changed, hardware.has_value());
  read_network(map, choice, changed, hardware.has_value());
  read_host(map, choice);
  if (const auto gpu = map.find("gpu")) {
    YamlMap of(*gpu);
    if (const auto name = of.find("name")) {
      if (!hardware) name->fail("changes the GPU of a cluster of the catalogue: give cluster.name");
      const GpuEntry& other = catalog->gpu(*name);
      hardware->gpu = other.gpu;
      hardware->interconnect = other.interconnect;
      choice.cluster.idle_power = other.gpu.idle_power;
      choice.cluster.busy_power = other.gpu.busy_power;
    }
    read_power(of, choice.cluster);
    of.finish();
  }
  map.finish();
  add_numbers_of_gpu(*catalog, choice);
  if (hardware) {
    hardware->cluster = choice.cluster;
    agree(*hardware);
    scale_links(hardware->interconnect, choice.cluster.link_bandwidth / link, choice.numbers);
  }
  return choice;
}

}  // namespace pipesim
