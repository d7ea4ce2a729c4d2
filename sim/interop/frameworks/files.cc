// Nested files of settings: TOML and JSON as names and values.
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

void add_leaves(const JsonValue& value, const std::string& path, Settings& to) {
  if (value.is_map()) {
    for (const JsonValue& each : value.values()) {
      add_leaves(each, path.empty() ? each.key() : fmt::format("{}.{}", path, each.key()), to);
    }
    return;
  }
  Setting setting{path, {}, value.where()};
  const auto add = [&setting](const JsonValue& each) {
    if (each.is_number()) {
      setting.values.push_back(fmt::format("{}", each.number(-1e300, 1e300)));
    } else if (each.is_text()) {
      setting.values.push_back(each.text());
    } else if (each.is_null() || each.is_list() || each.is_map()) {
      setting.values.emplace_back(each.is_null() ? "null" : "(a value of another kind)");
    } else {
      setting.values.emplace_back(each.flag() ? "true" : "false");
    }
  };
  if (value.is_list()) {
    for (const JsonValue& each : value.values()) add(each);
  } else {
    add(value);
  }
  to.add(std::move(setting));
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
                            const std::string& text) {
  const JsonFile json(file, text);
  Settings settings(framework, file);
  if (!json.root().is_map()) json.root().fail("expected a map of settings");
  add_leaves(json.root(), "", settings);
  return settings;
}

}  // namespace pipesim
