// The hardware catalogue, and a scenario's `cluster`: a name of it, a map, or a name with changes.
//
// The catalogue is gpus.yaml and clusters.yaml of one folder (models/catalog in the sources), and
// of the user's where there is one. A GPU may be a data sheet (sim/read/data_sheet.h). Every number
// stands in a group with a `source` that says whether it is fitted to measurements (which),
// published (where) or assumed (why). Read strictly; InputError for every mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/cluster.h"
#include "models/hardware.h"
#include "sim/core/error.h"
#include "sim/read/hardware_entries.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

// `known` has what is not in these files, and gives way to them where a name is the same.
HardwareCatalog read_hardware(const YamlSource& gpus, const YamlSource& clusters,
                              HardwareCatalog known = {});
// `asked` locates the request, for when a file cannot be read.
HardwareCatalog read_hardware_folder(const std::string& folder, const Location& asked);
// The shipped catalogue with the user's gpus.yaml and clusters.yaml, either of them. They are in
// the folder that PIPESIM_CATALOG names, else in ~/.config/pipesim/catalog where that is.
HardwareCatalog read_all_hardware(const Location& asked);
// The GPUs of one file beside the shipped catalogue, by themselves.
std::vector<GpuEntry> read_gpu_file(const std::string& path, const Location& asked);
// The files that read_all_hardware reads.
std::vector<std::string> hardware_files();

// `hardware` is set where the cluster has a name. Reads the catalogue of data_folder only then.
// `numbers` are those of its GPU and of the cluster, or, without a name, the scenario's own.
struct ClusterChoice {
  Cluster cluster;
  std::optional<Hardware> hardware;
  std::vector<Sourced> numbers;
  Wire link{BytesPerSecond(1e9)};  // between GPUs of a node
  Wire card;                       // of the network
};
ClusterChoice read_cluster(const YamlValue& value);

}  // namespace pipesim
