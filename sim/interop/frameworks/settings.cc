#include "sim/interop/frameworks/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "sim/core/data_folder.h"
#include "sim/core/letters.h"
#include "sim/core/text.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

// The catalogue's knowledge of a framework's settings.
struct KnownSettings {
  std::set<std::string> no_effect;
  std::set<std::string> stops;       // names that change the answer
  std::vector<std::string> weighty;  // words of such names
  std::vector<std::string> light;    // words of names that are none, all the same
  std::map<std::string, std::optional<std::string>> defaults;
  // Settings and programs that only models of another kind have, with the kind.
  std::map<std::string, std::string> other_models;
  // Settings of which a file of the framework has one; none: any file may be.
  std::set<std::string> marks;
};

using KnownFrameworks = std::map<std::string, KnownSettings>;

std::vector<std::string> words_at(YamlMap& map, const char* key) {
  std::vector<std::string> words;
  for (const YamlValue& each : map.require(key, "a list").list()) words.push_back(each.text());
  return words;
}

KnownFrameworks read_frameworks() {
  const std::string path = data_folder("catalog") + "/frameworks.yaml";
  const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
  KnownFrameworks all;
  for (const auto& [name, value] : source.root().entries()) {
    KnownSettings& known = all[name];
    YamlMap map(value);
    const auto no_effect = words_at(map, "no_effect");
    const auto stops = words_at(map, "stops");
    known.no_effect = {no_effect.begin(), no_effect.end()};
    known.stops = {stops.begin(), stops.end()};
    known.weighty = words_at(map, "weighty_words");
    known.light = words_at(map, "light_words");
    for (const auto& [setting, at] : map.require("default", "a map").entries()) {
      known.defaults[setting] = at.is_null() ? std::nullopt : std::optional(at.node().Scalar());
    }
    if (const auto marks = map.find("marks")) {
      for (const YamlValue& each : marks->list()) known.marks.insert(each.text());
    }
    const auto others = map.find("other_models");
    if (!others) continue;
    for (const auto& [kind, names] : others->entries()) {
      for (const YamlValue& each : names.list()) known.other_models[each.text()] = kind;
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

// True if the set has a, a.b or a.b.c for the path a.b.c.
bool covers(const std::set<std::string>& names, const std::string& path) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (names.contains(path.substr(0, dot))) return true;
  }
  return names.contains(path);
}

// True if the program's file has the name within its own.
bool is_program(const std::string& program, const std::string& name) {
  return program.find(name, program.rfind('/') + 1) != std::string::npos;
}

// A switch that is off, whatever it is.
bool is_off(const Setting& setting) {
  const std::string value = small_letters(setting.text());
  return value == "false" || value == "0" || value == "[]" || value == "none";
}

// A name that is not understood and changes model, schedule, precision, memory or sizes: the
// catalogue lists it, or one of its words.
bool is_weighty(const KnownSettings& known, const std::string& name, bool in_catalogue) {
  if (known.stops.contains(name)) return true;
  if (in_catalogue) return false;
  std::string padded = "_" + small_letters(name) + "_";
  std::ranges::replace(padded, '.', '_');
  const auto has_one = [&](const std::vector<std::string>& words) {
    return std::ranges::any_of(words, [&](const std::string& word) {
      return padded.find("_" + word + "_") != std::string::npos;
    });
  };
  return has_one(known.weighty) && !has_one(known.light);
}

}  // namespace

std::string Setting::text() const { return fmt::format("{}", fmt::join(values, " ")); }

void Settings::give(const std::string& name, const std::string& value, const Location& where) {
  Setting setting{name, {value}, where};
  setting.given = true;
  add(std::move(setting));
}

bool Settings::has(const std::string& name) const {
  return std::ranges::count(settings_, name, &Setting::name) > 0;
}

Location Settings::place(const std::string& name) const {
  const auto found = std::ranges::find(settings_, name, &Setting::name);
  return found == settings_.end() ? Location{file_, 1, 1, ""} : found->where;
}

std::optional<std::string> Settings::seen(const std::string& name) const {
  const auto found = std::ranges::find(settings_, name, &Setting::name);
  const bool known = found != settings_.end() && found->asks.empty() && !is_nothing(*found);
  return known ? std::optional(found->text()) : std::nullopt;
}

bool Settings::is_given(const std::string& name) const {
  const auto found = std::ranges::find(settings_, name, &Setting::name);
  return found != settings_.end() && found->given;
}

void Settings::note(const std::string& note) {
  if (std::ranges::count(notes_, note) == 0) notes_.push_back(note);
}

bool Settings::asks(const char* name) const {
  const auto found = std::ranges::find(settings_, name, &Setting::name);
  return found != settings_.end() && !found->asks.empty();
}

std::vector<Asked> Settings::asked() const {
  std::vector<Asked> all = asked_;
  for (const Setting& setting : settings_) {
    if (setting.asks.empty() || (!setting.taken && !has_effect(setting.name))) continue;
    all.push_back({{setting.name}, setting.asks, setting.alternatives, setting.where});
  }
  return all;
}

bool Settings::counts(const std::string& name) const {
  return known_settings(framework_).defaults.contains(name) || name == "model_parallel_size";
}

std::string Settings::whole_name(const std::string& name) const {
  const KnownSettings& known = known_settings(framework_);
  if (known.defaults.contains(name) || known.no_effect.contains(name)) return name;
  // Longer ends tell names of forks apart (cpu_offload, cpu_offloading).
  constexpr size_t kMostCut = 2;
  std::set<std::string> whole;
  const auto consider = [&](const std::string& each) {
    const bool longer = each.starts_with(name) && each.size() - name.size() <= kMostCut;
    if (longer && each.find('_', name.size()) == std::string::npos) whole.insert(each);
  };
  for (const auto& [each, value] : known.defaults) consider(each);
  for (const std::string& each : known.no_effect) consider(each);
  return whole.size() == 1 && name.find('_') != std::string::npos ? *whole.begin() : name;
}

bool Settings::has_effect(const std::string& name) const {
  const KnownSettings& known = known_settings(framework_);
  if (covers(known.no_effect, name)) return false;
  return known.defaults.contains(name) || is_weighty(known, name, false);
}

bool Settings::is_flag(const std::string& name) const {
  const auto& defaults = known_settings(framework_).defaults;
  const auto found = defaults.find(name);
  return found != defaults.end() && (found->second == "false" || found->second == "true");
}

void Settings::add(Setting setting) {
  std::erase_if(settings_, [&](const Setting& each) { return each.name == setting.name; });
  settings_.push_back(std::move(setting));
}

void Settings::move_section(const std::string& section, const std::string& to) {
  for (Setting& setting : settings_) {
    if (setting.name.starts_with(section)) setting.name.replace(0, section.size(), to);
  }
}

void Settings::leave_out(const std::string& section) {
  for (Setting& setting : settings_) {
    setting.taken = setting.taken || setting.name.starts_with(section);
  }
}

const Setting* Settings::find(std::initializer_list<const char*> names) {
  const Setting* found = nullptr;
  for (const char* name : names) {
    const auto setting = std::ranges::find(settings_, name, &Setting::name);
    if (setting == settings_.end()) continue;
    setting->taken = true;
    if (!setting->asks.empty()) return nullptr;
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

long Settings::number_or_usual(const char* name) {
  const auto value = number({name}, 1);
  if (value) return *value;
  const auto& defaults = known_settings(is_megatron() ? "megatron" : framework_).defaults;
  const auto found = defaults.find(name);
  const std::string text = found == defaults.end() ? "" : found->second.value_or("");
  long usual = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), usual);
  if (error == std::errc() && end == text.data() + text.size()) return usual;
  throw InputError({file_, 0, 0, ""}, fmt::format("{} is missing, and has no default", name));
}

std::optional<double> Settings::real(std::initializer_list<const char*> names) {
  const Setting* found = find(names);
  if (found == nullptr) return std::nullopt;
  // Later words are not the option's: a script's name may follow its launcher's last option.
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
  const std::string value = small_letters(found->values.front());
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  // A flag of a command line, before a word that is not its own.
  if (found->name.find('.') == std::string::npos && value.find('.') != std::string::npos) {
    return true;
  }
  throw InputError(found->where,
                   fmt::format("{}: expected true or false, not '{}'", found->name, found->text()));
}

namespace {

// Files name what the command line only switches off: no_x, whose default is true.
std::optional<std::optional<std::string>> default_of(const KnownSettings& known,
                                                     const std::string& name) {
  auto found = known.defaults.find(name);
  if (found == known.defaults.end()) found = known.defaults.find("no_" + name);
  if (found == known.defaults.end()) return std::nullopt;
  return found->second;
}

// "num_layrs 3 (line 21); did you mean 'num_layers'?"
std::string words_for(const Setting& setting, const KnownSettings& known, bool in_catalogue) {
  const std::string place =
      setting.given ? "the command line" : fmt::format("line {}", setting.where.line);
  std::string words = fmt::format("{}{}{} ({})", setting.name, setting.values.empty() ? "" : " ",
                                  setting.text(), place);
  // Paths are near each other by their sections alone.
  if (in_catalogue || setting.name.find('.') != std::string::npos) return words;
  std::vector<std::string> names;
  for (const auto& [name, value] : known.defaults) names.push_back(name);
  const std::string near = nearest_name(setting.name, names);
  return near.empty() ? words : fmt::format("{}; did you mean '{}'?", words, near);
}

// True for cpu_offloading_num_layers where the catalogue's switch cpu_offloading is false.
bool is_of_switched_off(const KnownSettings& known, const std::string& name,
                        const std::vector<Setting>& all) {
  return std::ranges::any_of(all, [&](const Setting& each) {
    return default_of(known, each.name) && name.starts_with(each.name + "_") &&
           small_letters(each.text()) == "false";
  });
}

// True where nothing is lost without a setting that nothing took.
bool says_nothing(const Setting& setting, bool in_catalogue) {
  return setting.usual || small_letters(setting.text()) == "auto" || setting.text() == "[]" ||
         !setting.asks.empty() || is_nothing(setting) || (!in_catalogue && is_off(setting));
}

}  // namespace

bool Settings::trains_other_model(const std::string& program) const {
  const auto& others = known_settings(framework_).other_models;
  return is_program(program, "pretrain_bert") || is_program(program, "pretrain_t5") ||
         std::ranges::any_of(others,
                             [&](const auto& each) { return is_program(program, each.first); });
}

void Settings::refuse_other_files() const {
  const std::set<std::string>& marks = known_settings(framework_).marks;
  const bool own = std::ranges::any_of(
      settings_, [&marks](const Setting& setting) { return marks.contains(setting.name); });
  if (own || marks.empty()) return;
  throw InputError({file_, 1, 1, ""},
                   "none of its settings is one of Megatron-LM's, such as num_layers or "
                   "tensor_model_parallel_size: pipesim reads files that say how to train");
}

void Settings::refuse_other_models() const {
  const KnownSettings& known = known_settings(framework_);
  for (const auto& [name, kind] : known.other_models) {
    const auto usual = default_of(known, name);
    for (const Setting& setting : settings_) {
      const bool off = usual ? small_letters(setting.text()) == small_letters(usual->value_or(""))
                             : is_off(setting);
      const bool says = !setting.usual && !is_nothing(setting) && !off;
      const bool program = setting.name == "program" && is_program(setting.text(), name);
      const bool named = setting.name == "name" && setting.text().starts_with(name);
      if (!program && !named && !(setting.name == name && says)) continue;
      throw InputError(setting.where,
                       fmt::format("{} is of {}: pipesim simulates the training of a decoder, "
                                   "alone or behind an encoder, or of BERT",
                                   program || named ? setting.text() : name, kind));
    }
  }
}

bool Settings::leaves_out(const Setting& setting) const {
  if (setting.taken || (!setting.asks.empty() && has_effect(setting.name))) return true;
  return setting.given && variables_.contains(setting.name);
}

Untaken Settings::untaken() const {
  const KnownSettings& known = known_settings(framework_);
  Untaken untaken;
  for (const Setting& setting : settings_) {
    if (leaves_out(setting)) continue;
    const auto usual = default_of(known, setting.name);
    const bool usually = usual && !setting.values.empty() &&
                         small_letters(setting.text()) == small_letters(usual->value_or("null"));
    const bool without = says_nothing(setting, usual.has_value()) ||
                         is_of_switched_off(known, setting.name, settings_);
    if (usually || without || covers(known.no_effect, setting.name)) {
      ++untaken.without_effect;
      continue;
    }
    std::string words = words_for(setting, known, usual.has_value());
    if (setting.given || is_weighty(known, setting.name, usual.has_value())) {
      untaken.stops.emplace_back(setting.name, words);
    }
    (usual ? untaken.not_modelled : untaken.unknown).push_back(std::move(words));
  }
  return untaken;
}

}  // namespace pipesim
