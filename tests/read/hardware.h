// Entries of the catalogue by name, and scenarios with given costs on a cluster.
#pragma once

#include <string>

#include "sim/core/data_folder.h"
#include "sim/read/hardware.h"
#include "sim/read/scenario.h"

namespace pipesim::hardware_test {

inline const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = read_hardware_folder(data_folder("catalog"), {});
  return kCatalog;
}

inline const GpuEntry& gpu(const std::string& name) {
  for (const GpuEntry& entry : catalog().gpus) {
    if (entry.gpu.name == name) return entry;
  }
  throw LogicError("no such GPU: " + name);
}

inline Hardware cluster(const std::string& name) {
  for (const ClusterEntry& entry : catalog().clusters) {
    if (entry.hardware.name == name) return entry.hardware;
  }
  throw LogicError("no such cluster: " + name);
}

inline const std::string kBase =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, message: 10 "
    "MB}\n";

inline Scenario read(const std::string& cluster) {
  return read_scenario(YamlSource("s.yaml", kBase + "cluster: " + cluster + "\n"));
}

inline std::string refusal(const std::string& cluster) {
  try {
    (void)read(cluster);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace pipesim::hardware_test
