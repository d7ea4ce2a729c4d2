// Entries of the hardware catalogue: a GPU or a cluster with where its numbers come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

// A link or a NIC: its rate, and the share of it that messages get.
struct Wire {
  BytesPerSecond bandwidth{1};
  double achieved = 1;

  [[nodiscard]] BytesPerSecond of_messages() const { return achieved * bandwidth; }
};

struct GpuEntry {
  std::string title;
  Gpu gpu;
  Interconnect interconnect;  // the collectives of one node; its NICs are the cluster's
  std::vector<Sourced> numbers;
  // A data sheet's values: GPUs that reach each other at the rate of its link, and the link.
  std::optional<int> domain = {};
  std::optional<Wire> link = {};
};

struct ClusterEntry {
  std::string title;
  Hardware hardware;
  Wire link;  // between GPUs of a node
  Wire card;  // of the network
  std::vector<Sourced> numbers;
};

struct HardwareCatalog {
  std::vector<GpuEntry> gpus;
  std::vector<ClusterEntry> clusters;

  // InputError at `name`, with the nearest valid name.
  [[nodiscard]] const GpuEntry& gpu(const YamlValue& name) const;
  [[nodiscard]] const ClusterEntry& cluster(const YamlValue& name) const;
};

}  // namespace pipesim
