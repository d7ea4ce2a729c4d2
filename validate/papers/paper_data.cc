#include "validate/papers/paper_data.h"

#include <filesystem>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/scenario/read_hardware.h"

namespace pipesim {

std::string paper_file(const std::string& folder, const std::string& name) {
  const std::filesystem::path base(folder);
  const auto plain = base / (name + ".yaml");
  const auto nested = base / name / (name + ".yaml");
  std::error_code ignored;
  const bool use_nested =
      !std::filesystem::exists(plain, ignored) && std::filesystem::exists(nested, ignored);
  return (use_nested ? nested : plain).string();
}

bool has_paper(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(paper_file(folder, name), ignored);
}

Hardware cluster_of_catalog(const std::string& name, const Location& asked) {
  const HardwareCatalog catalog = read_hardware_folder(data_folder("catalog"), asked);
  for (const ClusterEntry& each : catalog.clusters) {
    if (each.hardware.name == name) return each.hardware;
  }
  throw LogicError("no cluster " + name + " in the catalogue");
}

}  // namespace pipesim
