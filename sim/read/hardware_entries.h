// Entries of the hardware catalogue: a GPU or a cluster with where its numbers come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

struct GpuEntry {
  std::string title;
  Gpu gpu;
  Interconnect interconnect;  // the collectives of one node; its cards are the cluster's
  std::vector<Sourced> numbers;
  // A data sheet's values: GPUs that reach each other at the rate of its link, the link, and what a
  // message gets of it.
  std::optional<int> domain = {};
  std::optional<BytesPerSecond> link = {};
  std::optional<BytesPerSecond> message = {};
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

}  // namespace pipesim
