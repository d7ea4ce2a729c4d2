#include "sim/read/short_names.h"

#include <algorithm>
#include <array>

namespace pipesim {
namespace {

struct ShortName {
  std::string_view name, section, key;
};
constexpr std::array kShortNames{
    ShortName{"pp", "parallel", "pipeline_model_parallel_size"},
    ShortName{"tp", "parallel", "tensor_model_parallel_size"},
    ShortName{"dp", "parallel", "data_parallel_size"},
    ShortName{"cp", "parallel", "context_parallel_size"},
    ShortName{"ep", "parallel", "expert_model_parallel_size"},
    ShortName{"etp", "parallel", "expert_tensor_parallel_size"},
    ShortName{"vpp", "parallel", "virtual_pipeline_model_parallel_size"},
    ShortName{"mbs", "batch", "micro_batch_size"},
    ShortName{"gbs", "batch", "global_batch_size"},
};
// Keys of the root that people type as options.
constexpr std::array<std::string_view, 4> kRoots{"schedule", "model", "cluster", "recompute"};

const ShortName* find(std::string_view name) {
  const auto found = std::ranges::find(kShortNames, name, &ShortName::name);
  return found == kShortNames.end() ? nullptr : found;
}

}  // namespace

std::string key_in(std::string_view section, std::string key) {
  std::ranges::replace(key, '-', '_');
  const ShortName* name = find(key);
  return name != nullptr && section == name->section ? std::string(name->key) : key;
}

std::string in_full(std::string path) {
  std::ranges::replace(path, '-', '_');
  const size_t dot = path.rfind('.');
  if (const ShortName* name = find(path)) {
    return std::string(name->section) + "." + std::string(name->key);
  }
  if (dot == std::string::npos) return path;
  return path.substr(0, dot + 1) + key_in(path.substr(0, dot), path.substr(dot + 1));
}

bool stands_alone(std::string_view key) {
  return find(key) != nullptr || std::ranges::find(kRoots, key) != kRoots.end();
}

}  // namespace pipesim
