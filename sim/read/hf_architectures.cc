#include <algorithm>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/hf_config.h"

namespace pipesim {
namespace {

YamlSource table_source() {
  const std::string path = data_folder("catalog") + "/architectures.yaml";
  return YamlSource::from_file(path, {path, 0, 0, ""});
}

// Maps of `model:`, whose keys an entry may replace one by one.
bool is_section(const std::string& key) {
  static const std::set<std::string> kSections{"moe",
                                               "mla",
                                               "linear_attention",
                                               "sparse_attention",
                                               "compressed_attention",
                                               "window_attention",
                                               "encoder"};
  return kSections.contains(key);
}

void replace(std::map<std::string, YamlValue>& values, const std::string& key,
             const YamlValue& value) {
  values.erase(key);
  if (!value.is_null()) values.emplace(key, value);
}

// A formula, or those of a map; null takes away what the entries it is like have.
void add_formula(std::map<std::string, YamlValue>& model, const std::string& key,
                 const YamlValue& value) {
  if (!is_section(key)) {
    replace(model, key, value);
  } else if (value.is_null()) {
    std::erase_if(model, [&](const auto& each) { return each.first.starts_with(key + "."); });
  } else {
    for (const auto& [own, formula] : value.entries())
      replace(model, fmt::format("{}.{}", key, own), formula);
  }
}

std::vector<std::string> texts(const YamlValue& value) {
  std::vector<std::string> all;
  if (value.is_scalar()) return {value.text()};
  for (const YamlValue& each : value.list()) all.push_back(each.text());
  return all;
}

void add_names(std::map<std::string, YamlValue>& values, const YamlValue& part) {
  for (const auto& [name, formula] : part.entries()) replace(values, name, formula);
}

void add_part(const std::string& part, const YamlValue& value, Architecture& into) {
  if (part == "names" || part == "like") return;
  if (part == "defaults") return add_names(into.defaults, value);
  if (part == "valid") return add_names(into.valid, value);
  if (part == "renamed") {
    for (const auto& [spelling, name] : value.entries()) {
      into.spellings[name.text()].push_back(spelling);
    }
  } else if (part == "refused") {
    for (const YamlValue& each : value.list()) into.refused.push_back(each);
  } else if (part == "no_cost") {
    for (const std::string& name : texts(value)) into.no_cost.push_back(name);
  } else {
    add_formula(into.model, part, value);
  }
}

}  // namespace

const Architectures& Architectures::shipped() {
  static const Architectures kShipped;
  return kShipped;
}

Architectures::Architectures() : source_(table_source()) {
  YamlMap root(source_.root());
  inner_ = texts(root.require("inner", "a list of keys"));
  for (const auto& [word, key] : root.require("words", "keys of model:").entries()) {
    words_.emplace_back(word, key.text());
  }
  for (const auto& [key, entry] : root.require("entries", "the entries").entries()) {
    entries_.emplace(key, entry);
    YamlMap map(entry);
    const auto names = map.find("names");
    if (!names) continue;
    for (const std::string& name : texts(*names)) {
      entry_of_name_.emplace(name, key);
      names_.push_back(name);
    }
  }
  root.finish();
}

Architecture Architectures::entry(const std::string& key) const {
  Architecture architecture;
  add(key, architecture);
  return architecture;
}

void Architectures::add(const std::string& key, Architecture& into) const {
  const YamlValue& entry = entries_.at(key);
  YamlMap map(entry);
  if (const auto like = map.find("like")) {
    for (const std::string& base : texts(*like)) add(base, into);
  }
  for (const auto& [part, value] : entry.entries()) add_part(part, value, into);
}

std::optional<Architecture> Architectures::find(const std::string& name) const {
  const auto found = entry_of_name_.find(name);
  return found == entry_of_name_.end() ? std::nullopt : std::optional(entry(found->second));
}

std::string Architectures::spoken_of(const std::string& key) const {
  const auto found = std::ranges::find_if(
      words_, [&key](const auto& each) { return key.find(each.first) != std::string::npos; });
  return found == words_.end() ? "" : found->second;
}

}  // namespace pipesim
