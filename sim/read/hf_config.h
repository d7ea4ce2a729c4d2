// The inside of the reader of Hugging Face's config.json: its keys, and one reader an architecture.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/transformer.h"
#include "sim/read/yaml.h"

namespace pipesim {

// A config.json, in which null stands for a key that is not there. `stated` are the keys beside
// hf_config in the scenario: what they say, the file need not.
class HfConfig {
 public:
  HfConfig(const YamlValue& root, std::span<const std::string> stated)
      : map_(root), stated_(stated) {}

  int size(const char* key);
  int size_or(const char* key, int missing);
  // The first of the keys that is there.
  int size_of(std::initializer_list<const char*> keys);
  bool flag_or(const char* key, bool missing);
  double number_or(const char* key, double missing);
  std::string text_or(const char* key, const std::string& missing);
  std::optional<YamlValue> given(const char* key);
  // A list of one entry a layer.
  std::optional<std::vector<YamlValue>> per_layer(const char* key, int layers);
  [[nodiscard]] bool is_stated(const std::string& key) const;
  [[nodiscard]] const YamlValue& value() const { return map_.value(); }
  // Refuses every key that was not read and whose name speaks of the shape.
  void finish() const;

 private:
  YamlMap map_;
  std::span<const std::string> stated_;
};

// `outer` names the architecture, `config` has the sizes of its text: most often the same map.
// InputError with the nearest name where the architecture has no reader.
Transformer read_architecture(HfConfig& outer, HfConfig& config);
// Of a nested vision_config; `outer` is the file's whole map.
std::optional<Encoder> read_vision(HfConfig& vision, HfConfig& outer);

}  // namespace pipesim
