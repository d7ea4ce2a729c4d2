#include "validate/papers/paper_data.h"

#include <filesystem>

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

}  // namespace pipesim
