// YAML of frameworks that say Megatron-LM's settings by names of their own, which the catalogue
// lists (models/catalog/frameworks.yaml): GPT-NeoX and nanotron.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/interop/frameworks/settings.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

struct Renamed {
  std::string name;  // Megatron-LM's
  std::map<std::string, std::string> values = {};
  std::map<std::string, std::string> words = {};  // of a list all of whose words mean the same
};

struct Framework {
  std::string name;
  std::vector<std::string> of;
  std::map<std::string, Renamed> names;
  std::map<std::string, std::string> given;
};

std::map<std::string, std::string> texts_of(const YamlValue& map) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : map.entries()) texts[key] = value.node().Scalar();
  return texts;
}

Framework framework_of(const std::string& name, YamlMap& map, const YamlValue& of) {
  Framework framework;
  framework.name = name;
  for (const YamlValue& each : of.list()) framework.of.push_back(each.text());
  framework.given = texts_of(map.require("given", "a map"));
  for (const auto& [path, value] : map.require("names", "a map").entries()) {
    YamlMap renamed(value);
    Renamed& to = framework.names[path];
    to.name = renamed.require("name", "a setting").text();
    if (const auto values = renamed.find("values")) to.values = texts_of(*values);
    if (const auto words = renamed.find("words")) to.words = texts_of(*words);
  }
  return framework;
}

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> kAll = [] {
    const std::string path = data_folder("catalog") + "/frameworks.yaml";
    const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
    std::vector<Framework> all;
    for (const auto& [name, value] : source.root().entries()) {
      YamlMap map(value);
      if (const auto of = map.find("of")) all.push_back(framework_of(name, map, *of));
    }
    return all;
  }();
  return kAll;
}

using Leaves = std::vector<std::pair<std::string, YamlValue>>;

void add_leaves(const YamlValue& map, const std::string& path, Leaves& to) {
  for (const auto& [key, value] : map.all_entries()) {
    std::string name = path.empty() ? key : fmt::format("{}.{}", path, key);
    std::ranges::replace(name, '-', '_');
    if (value.is_map()) {
      add_leaves(value, name, to);
    } else {
      to.emplace_back(std::move(name), value);
    }
  }
}

// The meaning that all words of the text share: "[[[flash], 32]]". Nothing where one has none.
std::optional<std::string> shared_meaning(const std::map<std::string, std::string>& words,
                                          const std::string& text) {
  std::optional<std::string> meaning;
  for (size_t at = 0; at < text.size();) {
    const auto is_letter = [&text](size_t i) {
      return i < text.size() &&
             (std::isalpha(static_cast<unsigned char>(text[i])) || text[i] == '_');
    };
    size_t end = at;
    while (is_letter(end)) ++end;
    if (end > at) {
      const auto known = words.find(text.substr(at, end - at));
      if (known == words.end() || (meaning && *meaning != known->second)) return std::nullopt;
      meaning = known->second;
    }
    at = end + 1;
  }
  return meaning;
}

Setting setting_of(const std::string& path, const YamlValue& value, const Renamed* renamed) {
  Setting setting{renamed == nullptr ? path : renamed->name, {}, value.where()};
  std::string text = value.is_scalar() ? value.node().Scalar()
                     : value.is_list() ? value.one_line()
                                       : "null";
  if (renamed != nullptr && !renamed->words.empty()) {
    const auto meaning = shared_meaning(renamed->words, text);
    if (!meaning) setting.name = path;
    text = meaning.value_or(text);
  } else if (renamed != nullptr) {
    const auto known = renamed->values.find(text);
    if (known != renamed->values.end()) text = known->second;
  }
  setting.values.push_back(std::move(text));
  return setting;
}

// GPT-NeoX cuts a gated MLP's width to a third, so that its three matrices are as large as two, and
// takes the next multiple.
void put_neox_width(Settings& settings) {
  const auto hidden = settings.number({"hidden_size"}, 1);
  const auto stated = settings.number({"ffn_hidden_size"}, 1);
  const long multiple = settings.number({"mlp_multiple_of"}, 1).value_or(1);
  if (!hidden) return;
  constexpr long kMost = 1L << 40;
  long width = std::min(stated.value_or(4 * *hidden), kMost);
  const std::string activation = settings.text({"glu_activation"}).value_or("");
  if (activation.find("glu") != std::string::npos) width = width * 2 / 3 / 2;
  width = (width + multiple - 1) / multiple * multiple;
  settings.add({"ffn_hidden_size", {std::to_string(width)}, settings.place("hidden_size")});
}

}  // namespace

std::optional<Settings> read_renamed_settings(const std::string& file, const std::string& text) {
  const YamlSource source(file, text);
  const YamlValue root = source.root();
  if (!root.is_map()) return std::nullopt;
  Leaves leaves;
  add_leaves(root, "", leaves);
  const auto has = [&leaves](const std::string& path) {
    return std::ranges::any_of(leaves, [&](const auto& leaf) { return leaf.first == path; });
  };
  const auto& all = frameworks();
  const auto framework = std::ranges::find_if(
      all, [&](const Framework& each) { return std::ranges::all_of(each.of, has); });
  if (framework == all.end()) return std::nullopt;
  Settings settings(framework->name, file);
  for (const auto& [name, value] : framework->given) settings.add({name, {value}, root.where()});
  for (const auto& [path, value] : leaves) {
    const auto known = framework->names.find(path);
    settings.add(
        setting_of(path, value, known == framework->names.end() ? nullptr : &known->second));
  }
  if (framework->name == "gpt-neox") put_neox_width(settings);
  return settings;
}

}  // namespace pipesim
