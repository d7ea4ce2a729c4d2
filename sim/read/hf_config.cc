#include "sim/read/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/text.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

// The maps of a file: the whole, and the one that has the sizes of its text, most often the same.
struct Maps {
  explicit Maps(const YamlValue& root) : whole(root) {
    for (const std::string& key : Architectures::shipped().inner()) {
      const auto value = whole.find(key);
      if (value && value->is_map() && !inner) inner.emplace(*value, &whole);
    }
  }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;

  HfMap& text() { return inner ? *inner : whole; }

  HfMap whole;
  std::optional<HfMap> inner;  // knows the whole by its address
};

// Classes and types by which a file says what it is, the surest first.
std::vector<YamlValue> names_of(Maps& maps) {
  std::vector<YamlValue> names;
  const auto take = [&names](HfMap& map, const char* key) {
    const auto value = map.find(key);
    if (value && value->is_list()) {
      for (const YamlValue& each : value->list()) names.push_back(each);
    } else if (value) {
      names.push_back(*value);
    }
  };
  if (maps.inner) take(*maps.inner, "architectures");
  take(maps.whole, "architectures");
  if (maps.inner) take(*maps.inner, "model_type");
  take(maps.whole, "model_type");
  return names;
}

Architecture architecture_of(Maps& maps) {
  const Architectures& table = Architectures::shipped();
  const std::vector<YamlValue> names = names_of(maps);
  for (const YamlValue& name : names) {
    if (const auto found = table.find(name.text())) return *found;
  }
  if (names.empty()) {
    maps.whole.value().fail("'architectures' is missing: expected a list of one name");
  }
  const std::string name = names.front().text();
  const std::string near = nearest_name(name, table.names());
  names.front().fail(fmt::format(
      "architecture '{}' is not known{}: state its shape as 'model: {{base: NAME, ...}}' with the "
      "nearest of `pipesim list models` and the keys of docs/reference/scenario.md, \"Model\"",
      name, near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

// Keys that may cost and that nothing has read, with the key of `model:` that would say it.
using Unknown = std::vector<std::pair<YamlValue, std::string>>;

// Keys that stand in the text's map too are the text's.
void forget_repeated(HfMap& whole, HfMap& text) {
  for (const auto& [key, value] : whole.unread()) {
    if (text.find(key)) (void)whole.find(key);
  }
}

void add_unknown(const HfMap& map, const Architecture& architecture,
                 std::span<const std::string> stated, Unknown& unknown) {
  for (const auto& [key, value] : map.unread()) {
    if (is_of_no_cost(architecture, key, value)) continue;
    const size_t dot = key.rfind('.');
    const std::string word =
        Architectures::shipped().spoken_of(dot == std::string::npos ? key : key.substr(dot + 1));
    if (word.empty() || std::ranges::find(stated, word) != stated.end()) continue;
    unknown.emplace_back(value, word);
  }
}

void refuse(const Unknown& unknown) {
  if (unknown.empty()) return;
  std::vector<std::string> others;
  std::vector<std::string> words;
  for (const auto& [value, word] : unknown) {
    if (!others.empty() || &value != &unknown.front().first) others.push_back(value.path());
    const std::string stated = word + ": ...";
    if (std::ranges::find(words, stated) == words.end()) words.push_back(stated);
  }
  const bool one = others.empty();
  unknown.front().first.fail_key(fmt::format(
      "not understood{}, and {} may change what a layer costs: write 'model: {{hf_config: FILE, "
      "{}}}' beside the file, which then {} in {} place",
      one ? ""
          : fmt::format(", nor {} {}", others.size() == 1 ? "is" : "are", fmt::join(others, ", ")),
      one ? "it" : "they", fmt::join(words, ", "), one ? "stands" : "stand",
      one ? "its" : "their"));
}

// Towers are optional: the reason why one is left out, or nothing.
std::string read_tower(const YamlValue& tower, HfMap& whole, YAML::Node& model) {
  const Architecture architecture = Architectures::shipped().entry("tower");
  HfMap map(tower, &whole);
  try {
    const YAML::Node made = derive(architecture, map, {});
    Unknown unknown;
    add_unknown(map, architecture, {}, unknown);
    refuse(unknown);
    model["encoder"] = made["encoder"];
  } catch (const InputError& error) {
    return error.message();
  }
  return "";
}

}  // namespace

std::optional<YamlValue> HfMap::find(const std::string& key) {
  if (key.starts_with("outer.")) return outer_ ? outer_->find(key.substr(6)) : std::nullopt;
  const size_t dot = key.find('.');
  auto value = map_.find(key.substr(0, dot));
  if (value && value->is_null()) value.reset();
  if (!value || dot == std::string::npos) return value;
  if (!value->is_map()) return std::nullopt;
  auto& map = nested_[key.substr(0, dot)];
  if (!map) map = std::make_unique<HfMap>(*value);
  return map->find(key.substr(dot + 1));
}

KeyedValues HfMap::unread() const {
  KeyedValues keys = map_.unread();
  for (const auto& [name, map] : nested_) {
    for (auto& [key, value] : map->unread())
      keys.emplace_back(fmt::format("{}.{}", name, key), value);
  }
  return keys;
}

Transformer read_hf_config(const YamlValue& root, const std::string& name,
                           std::span<const std::string> stated) {
  Maps maps(root);
  const Architecture architecture = architecture_of(maps);
  HfMap& text = maps.text();
  refuse_values(architecture, text);
  YAML::Node model = derive(architecture, text, stated);
  std::string source = root.where().file;
  const auto tower = maps.whole.find("vision_config");
  if (tower && tower->is_map()) {
    const std::string fault = read_tower(*tower, maps.whole, model);
    if (!fault.empty()) source += ", without " + fault;
  }
  if (const auto audio = maps.whole.find("audio_config"); audio && audio->is_map()) {
    source += ", without audio_config, which is not read";
  }
  Unknown unknown;
  add_unknown(text, architecture, stated, unknown);
  if (maps.inner) {
    forget_repeated(maps.whole, text);
    add_unknown(maps.whole, architecture, stated, unknown);
  }
  refuse(unknown);
  model["family"] = "llama";
  model["name"] = name;
  model["source"] = source;
  return read_model(root.made_of(model));
}

Transformer read_hf_config_file(const std::string& path, const Location& asked,
                                std::span<const std::string> stated) {
  const YamlSource source = YamlSource::from_file(path, asked);
  // Every model's file is called config.json; its folder says whose it is.
  const auto file = std::filesystem::absolute(path);
  const bool usual = file.filename() == "config.json";
  return read_hf_config(source.root(),
                        (usual ? file.parent_path().filename() : file.stem()).string(), stated);
}

}  // namespace pipesim
