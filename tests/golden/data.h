// The files of the authors' instances: tests/golden/data, and its folders.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pipesim::golden {

// One folder of the data; "" is the data folder itself.
inline std::filesystem::path data_folder(const std::string& folder) {
  return std::filesystem::path(PIPESIM_SOURCE_DIR) / "tests" / "golden" / "data" / folder;
}

// The JSON files of that folder, by name.
inline std::vector<std::filesystem::path> data_files(const std::string& folder = "") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder(folder))) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

inline nlohmann::json read_json(const std::filesystem::path& file) {
  nlohmann::json data;
  std::ifstream(file) >> data;
  return data;
}

// A list has one entry per device, the same for all its chunks.
inline double of_device(const nlohmann::json& values, int device) {
  return values.is_array() ? values.at(device).get<double>() : values.get<double>();
}

}  // namespace pipesim::golden
