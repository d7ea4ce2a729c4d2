// The hardware catalogue, and a scenario's `cluster`: a name of it, a map, or a name with changes.
//
// The catalogue is gpus.yaml and clusters.yaml of one folder (models/catalog in the sources). Every
// number stands in a group with a `source` that says whether it is fitted to measurements (which),
// published (where) or assumed (why). Read strictly; InputError for every mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/cluster.h"
#include "models/hardware.h"
#include "sim/core/error.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

struct GpuEntry {
  std::string title;
  Gpu gpu;
  Interconnect interconnect;  // the collectives of one node; its cards are the cluster's
  std::vector<Sourced> numbers;
};

struct ClusterEntry {
  std::string title;
  Hardware hardware;
  BytesPerSecond card_bandwidth{1};  // nominal
  double card_achieved = 1;          // share of it that messages get
  std::vector<Sourced> numbers;
};

struct HardwareCatalog {
  std::vector<GpuEntry> gpus;
  std::vector<ClusterEntry> clusters;

  // InputError at `name`, with the nearest valid name.
  [[nodiscard]] const GpuEntry& gpu(const YamlValue& name) const;
  [[nodiscard]] const ClusterEntry& cluster(const YamlValue& name) const;
};

HardwareCatalog read_hardware(const YamlSource& gpus, const YamlSource& clusters);
// `asked` locates the request, for when a file cannot be read.
HardwareCatalog read_hardware_folder(const std::string& folder, const Location& asked);

// `hardware` is set where the cluster has a name. Reads the catalogue of data_folder only then.
// `numbers` are those of its GPU and of the cluster, or, without a name, the scenario's own.
struct ClusterChoice {
  Cluster cluster;
  std::optional<Hardware> hardware;
  std::vector<Sourced> numbers;
  BytesPerSecond card_bandwidth{1};  // nominal
  double card_achieved = 1;          // share of it that messages get
};
ClusterChoice read_cluster(const YamlValue& value);

}  // namespace pipesim
