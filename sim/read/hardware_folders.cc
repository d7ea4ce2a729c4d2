// The folders of the hardware catalogue: the shipped one and the user's.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/read/hardware.h"

namespace pipesim {
namespace {

// The user's catalogue; empty where there is none.
std::string own_folder() {
  const char* named = std::getenv("PIPESIM_CATALOG");
  if (named != nullptr && *named != '\0') {
    if (!std::filesystem::is_directory(named)) {
      throw InputError({}, fmt::format("the catalogue '{}' is no folder", named));
    }
    return named;
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr) return "";
  std::error_code ignored;
  const std::string usual = std::string(home) + "/.config/pipesim/catalog";
  return std::filesystem::is_directory(usual, ignored) ? usual : "";
}

}  // namespace

HardwareCatalog read_hardware_folder(const std::string& folder, const Location& asked) {
  const YamlSource gpus = YamlSource::from_file(folder + "/gpus.yaml", asked);
  return read_hardware(gpus, YamlSource::from_file(folder + "/clusters.yaml", asked));
}

std::vector<std::string> hardware_files() {
  std::vector<std::string> files;
  for (const char* name : {"generations.yaml", "gpus.yaml", "clusters.yaml"}) {
    files.push_back(data_folder("catalog") + "/" + name);
  }
  const std::string own = own_folder();
  for (const char* name : {"gpus.yaml", "clusters.yaml"}) {
    const std::string file = own + "/" + name;
    if (!own.empty() && std::filesystem::exists(file)) files.push_back(file);
  }
  return files;
}

HardwareCatalog read_all_hardware(const Location& asked) {
  HardwareCatalog shipped = read_hardware_folder(data_folder("catalog"), asked);
  const std::string own = own_folder();
  if (own.empty()) return shipped;
  const auto source = [&](const char* name) {
    const std::string file = own + "/" + name;
    return std::filesystem::exists(file) ? YamlSource::from_file(file, asked)
                                         : YamlSource(file, "{}");
  };
  const YamlSource gpus = source("gpus.yaml");
  return read_hardware(gpus, source("clusters.yaml"), std::move(shipped));
}

std::vector<GpuEntry> read_gpu_file(const std::string& path, const Location& asked) {
  const YamlSource file = YamlSource::from_file(path, asked);
  const YamlSource none("clusters.yaml", "{}");
  const HardwareCatalog all = read_hardware(file, none, read_all_hardware(asked));
  std::vector<GpuEntry> read;
  for (const auto& [name, value] : file.root().entries()) {
    read.push_back(
        *std::ranges::find(all.gpus, name, [](const GpuEntry& each) { return each.gpu.name; }));
  }
  return read;
}

}  // namespace pipesim
