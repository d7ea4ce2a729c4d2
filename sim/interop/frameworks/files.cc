// Nested files of settings: TOML and JSON as names and values.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>

// toml++ keeps files apart from programs: it throws, and a table knows its place in the file.
#include <toml++/toml.h>

#include "sim/interop/frameworks/settings.h"
#include "sim/interop/json/json.h"

namespace pipesim {
namespace {

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "(a value of another kind)";
}

void add_leaves(const toml::node& node, const std::string& path, const std::string& file,
                Settings& to) {
  const auto begin = node.source().begin;
  const Location where{file, static_cast<int>(begin.line), static_cast<int>(begin.column), ""};
  if (const auto* table = node.as_table()) {
    for (const auto& [key, each] : *table) {
      const std::string name(key.str());
      add_leaves(each, path.empty() ? name : fmt::format("{}.{}", path, name), file, to);
    }
    return;
  }
  Setting setting{path, {}, where};
  if (const auto* list = node.as_array()) {
    for (const auto& each : *list) setting.values.push_back(text_of(each));
    if (setting.values.empty()) setting.values.emplace_back("[]");
  } else {
    setting.values.push_back(text_of(node));
  }
  to.add(std::move(setting));
}

// A template's words in place of values, `"stage": ZERO_STAGE`, stand as texts "${ZERO_STAGE}".
class Template {
 public:
  Template(std::string_view text, const Given& given) : given_(given) {
    for (size_t at = 0; at < text.size();) at = copy(text, at);
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::set<std::string>& names() const { return names_; }

  // The value given for a word, which is asked for otherwise.
  [[nodiscard]] std::string value(const std::string& text, std::vector<std::string>& asks) const {
    const std::string name = text.size() > 3 ? text.substr(2, text.size() - 3) : "";
    if (!text.starts_with("${") || !names_.contains(name)) return text;
    const auto found = given_.find(name);
    if (found != given_.end()) return found->second;
    asks.push_back(name);
    return "$" + name;
  }

 private:
  static size_t end_of(std::string_view text, size_t at, std::string_view more) {
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                more.find(text[at]) != std::string_view::npos)) {
      ++at;
    }
    return at;
  }
  // NAME, $NAME or ${NAME}.
  static size_t end_of_word(std::string_view text, size_t at) {
    if (text.substr(at).starts_with("${")) return std::min(text.find('}', at), text.size() - 1) + 1;
    return end_of(text, at + 1, "_");
  }
  static size_t end_of_text(std::string_view text, size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\') ++at;
    }
    return std::min(at + 1, text.size());
  }
  // Copies what stands at `at`; gives back its end.
  size_t copy(std::string_view text, size_t at) {
    const char c = text[at];
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool word = std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
    const size_t end = c == '"' ? end_of_text(text, at)
                       : number ? end_of(text, at, "+-.")
                       : word   ? end_of_word(text, at)
                                : at + 1;
    const std::string part(text.substr(at, end - at));
    text_ += word ? quoted(part) : part;
    return end;
  }
  std::string quoted(const std::string& word) {
    if (word == "true" || word == "false" || word == "null") return word;
    std::string name = word;
    std::erase_if(name, [](char c) { return c == '$' || c == '{' || c == '}'; });
    names_.insert(name);
    return fmt::format("\"${{{}}}\"", name);
  }

  const Given& given_;
  std::string text_;
  std::set<std::string> names_;
};

bool is_false(const JsonValue& value) {
  const bool other =
      value.is_map() || value.is_list() || value.is_null() || value.is_number() || value.is_text();
  return !other && !value.flag();
}

// The text of a value that is neither a list nor a map.
std::string leaf_text(const JsonValue& value, const Template& words, Setting& setting) {
  if (value.is_number()) return fmt::format("{}", value.number(-1e300, 1e300));
  if (value.is_text()) return words.value(value.text(), setting.asks);
  if (value.is_null()) return "null";
  if (value.is_list() || value.is_map()) return "(a value of another kind)";
  return value.flag() ? "true" : "false";
}

void add_leaf(const JsonValue& value, const std::string& path, const Template& words,
              Settings& to) {
  Setting setting{path, {}, value.where()};
  const auto add = [&](const JsonValue& each) {
    setting.values.push_back(leaf_text(each, words, setting));
  };
  if (value.is_list()) {
    for (const JsonValue& each : value.values()) add(each);
  } else {
    add(value);
  }
  to.add(std::move(setting));
}

// A section that is switched off says nothing else.
bool is_off(const JsonValue& of_section, const std::string& path) {
  return !path.empty() && of_section.key() == "enabled" && is_false(of_section);
}

void add_leaves(const JsonValue& value, const std::string& path, const Template& words,
                Settings& to) {
  if (!value.is_map()) return add_leaf(value, path, words, to);
  for (const JsonValue& each : value.values()) {
    if (is_off(each, path)) return add_leaf(each, path + ".enabled", words, to);
  }
  for (const JsonValue& each : value.values()) {
    std::string key = each.key();
    std::ranges::replace(key, '-', '_');
    add_leaves(each, path.empty() ? key : fmt::format("{}.{}", path, key), words, to);
  }
}

}  // namespace

Settings read_toml_settings(const std::string& framework, const std::string& file,
                            const std::string& text) {
  Settings settings(framework, file);
  try {
    add_leaves(toml::parse(text, file), "", file, settings);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    throw InputError({file, static_cast<int>(at.line), static_cast<int>(at.column), ""},
                     fmt::format("not valid TOML: {}", error.description()));
  }
  return settings;
}

Settings read_json_settings(const std::string& framework, const std::string& file,
                            const std::string& text, const Given& given) {
  const Template words(text, given);
  const JsonFile json(file, words.text());
  Settings settings(framework, file);
  settings.set_variables(words.names());
  if (!json.root().is_map()) json.root().fail("expected a map of settings");
  add_leaves(json.root(), "", words, settings);
  return settings;
}

}  // namespace pipesim
