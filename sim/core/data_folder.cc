#include "sim/core/data_folder.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>

namespace pipesim {
namespace {

namespace fs = std::filesystem;

// The file that this code was loaded from.
fs::path own_file() {
  Dl_info info;
  link_map* map = nullptr;
  const int found = ::dladdr1(reinterpret_cast<void*>(&data_folder), &info,
                              reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  // The executable itself has no name.
  const bool library = found != 0 && map != nullptr && *map->l_name != '\0';
  std::error_code ignored;
  return fs::canonical(library ? map->l_name : "/proc/self/exe", ignored);
}

fs::path find_prefix() {
  const fs::path folder = own_file().parent_path();
  std::error_code ignored;
  for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (fs::is_directory(above / "share" / "pipesim", ignored)) return above;
  }
  return folder.parent_path();
}

const fs::path& prefix() {
  static const fs::path kPrefix = find_prefix();
  return kPrefix;
}

}  // namespace

std::string data_folder(const std::string& name) {
  const char* given = std::getenv("PIPESIM_DATA");
  if (given != nullptr && *given != '\0') return (fs::path(given) / name).string();
  return (prefix() / "share" / "pipesim" / name).string();
}

std::string module_file(const std::string& name) {
  return (prefix() / "lib" / "pipesim" / name).string();
}

}  // namespace pipesim
