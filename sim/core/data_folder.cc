#include "sim/core/data_folder.h"

#include <filesystem>

namespace pipesim {

std::string data_folder(const std::string& name) {
  std::error_code ignored;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (executable.parent_path().parent_path() / "share" / "pipesim" / name).string();
}

}  // namespace pipesim
