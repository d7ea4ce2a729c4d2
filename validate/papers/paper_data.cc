#include "validate/papers/paper_data.h"

#include <array>
#include <filesystem>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/read/hardware.h"
#include "sim/read/software.h"

namespace pipesim {

namespace {

struct OtherName {
  const char* name;
  const char* other;
};
constexpr std::array<OtherName, 2> kOtherNames{
    {{"simumax", "simumax_b200"}, {"nemo", "nemo_h100"}}};

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::string validation_name(const std::string& name) {
  for (const OtherName& each : kOtherNames) {
    if (name == each.other) return each.name;
  }
  return name;
}

std::string paper_file(const std::string& folder, const std::string& name) {
  const std::filesystem::path base(folder);
  const auto plain = base / (name + ".yaml");
  const auto nested = base / name / (name + ".yaml");
  if (is_there(plain)) return plain.string();
  if (is_there(nested)) return nested.string();
  for (const OtherName& each : kOtherNames) {
    const auto other = base / (std::string(each.other) + ".yaml");
    if (name == each.name && is_there(other)) return other.string();
  }
  return plain.string();
}

bool has_paper(const std::string& folder, const std::string& name) {
  return is_there(paper_file(folder, name));
}

Hardware cluster_of_catalog(const std::string& name, const Location& asked) {
  // Read once: a table of runs asks for a cluster in every row.
  static const HardwareCatalog kCatalog = read_hardware_folder(data_folder("catalog"), asked);
  for (const ClusterEntry& each : kCatalog.clusters) {
    if (each.hardware.name == name) return each.hardware;
  }
  throw LogicError("no cluster " + name + " in the catalogue");
}

Software software_of_catalog(const std::string& name) {
  for (const SoftwareEntry& entry : catalogue_software()) {
    if (entry.software.name == name) return entry.software;
  }
  throw LogicError("no generation " + name);
}

}  // namespace pipesim
