#include "sim/interop/frameworks/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

// What the catalogue says of a framework's settings.
struct KnownSettings {
  std::set<std::string> no_effect;
  std::map<std::string, std::optional<std::string>> defaults;
};

using KnownFrameworks = std::map<std::string, KnownSettings>;

KnownFrameworks read_frameworks() {
  const std::string path = data_folder("catalog") + "/frameworks.yaml";
  const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
  KnownFrameworks all;
  for (const auto& [name, value] : source.root().entries()) {
    KnownSettings& known = all[name];
    YamlMap map(value);
    for (const YamlValue& each : map.require("no_effect", "a list").list()) {
      known.no_effect.insert(each.text());
    }
    for (const auto& [setting, at] : map.require("default", "a map").entries()) {
      known.defaults[setting] = at.is_null() ? std::nullopt : std::optional(at.node().Scalar());
    }
  }
  return all;
}

const KnownSettings& known_settings(const std::string& framework) {
  static const KnownFrameworks kAll = read_frameworks();
  static const KnownSettings kNone;
  const auto found = kAll.find(framework);
  return found == kAll.end() ? kNone : found->second;
}

bool is_nothing(const Setting& setting) {
  if (setting.values.size() != 1) return false;
  const std::string& value = setting.values[0];
  return value.empty() || value == "null" || value == "None" || value == "~";
}

std::string small(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Of path a.b.c: whether a, a.b or itself is in the set.
bool covers(const std::set<std::string>& names, const std::string& path) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (names.contains(path.substr(0, dot))) return true;
  }
  return names.contains(path);
}

}  // namespace

std::string Setting::text() const { return fmt::format("{}", fmt::join(values, " ")); }

void Settings::add(Setting setting) {
  std::erase_if(settings_, [&](const Setting& each) { return each.name == setting.name; });
  settings_.push_back(std::move(setting));
}

const Setting* Settings::find(std::initializer_list<const char*> names) {
  const Setting* found = nullptr;
  for (const char* name : names) {
    const auto setting = std::ranges::find(settings_, name, &Setting::name);
    if (setting == settings_.end()) continue;
    setting->taken = true;
    if (found == nullptr && !is_nothing(*setting)) found = &*setting;
  }
  return found;
}

std::optional<std::string> Settings::text(std::initializer_list<const char*> names) {
  const Setting* found = find(names);
  return found == nullptr ? std::nullopt : std::optional(found->text());
}

std::optional<long> Settings::number(std::initializer_list<const char*> names, long least) {
  const auto value = real(names);
  if (!value) return std::nullopt;
  constexpr double kMost = 1e15;
  if (*value == std::floor(*value) && *value >= static_cast<double>(least) && *value <= kMost) {
    return static_cast<long>(*value);
  }
  const Setting* found = find(names);
  throw InputError(found->where, fmt::format("{}: expected a whole number from {} on, not '{}'",
                                             found->name, least, found->text()));
}

std::optional<double> Settings::real(std::initializer_list<const char*> names) {
  const Setting* found = find(names);
  if (found == nullptr) return std::nullopt;
  // What follows is not an option's: a script's name behind its launcher's last option.
  const std::string first = found->values.empty() ? "" : found->values.front();
  double value = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), value);
  if (error != std::errc() || end != first.data() + first.size()) {
    throw InputError(found->where,
                     fmt::format("{}: expected a number, not '{}'", found->name, first));
  }
  return value;
}

std::optional<bool> Settings::flag(std::initializer_list<const char*> names) {
  const Setting* found = find(names);
  if (found == nullptr) return std::nullopt;
  if (found->values.empty()) return true;
  const std::string value = small(found->values.front());
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  // A flag of a command line, before a word that is not its own.
  if (found->name.find('.') == std::string::npos && value.find('.') != std::string::npos) {
    return true;
  }
  throw InputError(found->where,
                   fmt::format("{}: expected true or false, not '{}'", found->name, found->text()));
}

Untaken Settings::untaken() const {
  const KnownSettings& known = known_settings(framework_);
  std::vector<std::string> names;
  for (const auto& [name, value] : known.defaults) names.push_back(name);
  Untaken untaken;
  for (const Setting& setting : settings_) {
    if (setting.taken) continue;
    // Files name what the command line only switches off: no_x, whose default is true.
    auto usual = known.defaults.find(setting.name);
    if (usual == known.defaults.end()) usual = known.defaults.find("no_" + setting.name);
    const bool usually = usual != known.defaults.end() && !setting.values.empty() &&
                         small(setting.text()) == small(usual->second.value_or("null"));
    if (usually || is_nothing(setting) || covers(known.no_effect, setting.name)) {
      ++untaken.without_effect;
      continue;
    }
    const std::string words =
        fmt::format("{}{}{} (line {})", setting.name, setting.values.empty() ? "" : " ",
                    setting.text(), setting.where.line);
    if (usual != known.defaults.end()) {
      untaken.not_modelled.push_back(words);
    } else {
      // Paths are near each other by their sections alone.
      const bool path = setting.name.find('.') != std::string::npos;
      const std::string near = path ? "" : nearest_name(setting.name, names);
      untaken.unknown.push_back(near.empty() ? words
                                             : fmt::format("{}; did you mean '{}'?", words, near));
    }
  }
  return untaken;
}

}  // namespace pipesim
