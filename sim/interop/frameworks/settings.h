// Settings of a training framework, by name, with where they stand, and what became of each.
//
// Names are those of the framework with underscores (`--num-layers` is num_layers); of nested files
// either the last part of a path (Megatron's YAML, Bridge and NeMo, whose leaves bear Megatron's
// names) or the whole path with dots (torchtitan, DeepSpeed). Where a name is set twice the last
// one holds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

struct Setting {
  std::string name;
  std::vector<std::string> values;  // none: a flag that stands for itself
  Location where;
  bool taken = false;

  [[nodiscard]] std::string text() const;  // values with blanks between
};

// What is not taken, by what the catalogue (models/catalog/frameworks.yaml) knows of it.
struct Untaken {
  int without_effect = 0;
  std::vector<std::string> not_modelled;  // "name value (line 12)"
  std::vector<std::string> unknown;
};

class Settings {
 public:
  Settings(std::string framework, std::string file)
      : framework_(std::move(framework)), file_(std::move(file)) {}

  void add(Setting setting);

  // Each marks what it finds as taken. `names`: the first that is set. A value that says nothing
  // (null, None) counts as not set.
  [[nodiscard]] const Setting* find(std::initializer_list<const char*> names);
  [[nodiscard]] std::optional<std::string> text(std::initializer_list<const char*> names);
  // InputError at a setting that is no whole number from `least` on.
  [[nodiscard]] std::optional<long> number(std::initializer_list<const char*> names,
                                           long least = 0);
  [[nodiscard]] std::optional<double> real(std::initializer_list<const char*> names);
  // A flag without a value is true.
  [[nodiscard]] std::optional<bool> flag(std::initializer_list<const char*> names);
  [[nodiscard]] bool is_set(std::initializer_list<const char*> names) {
    return flag(names).value_or(false);
  }

  [[nodiscard]] Untaken untaken() const;
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool empty() const { return settings_.empty(); }

 private:
  std::string framework_;
  std::string file_;
  std::vector<Setting> settings_;
};

// From a launch script or a list of arguments: words of the shell with its quotes, comments,
// variables (also with := and :-), arrays and products of $(( )); nothing is run. A line
// "# start N processes", as `pipesim export` writes it, says the world size.
Settings read_arguments(const std::string& file, const std::string& text);

// From Megatron-LM's YAML, or a configuration of Megatron-Bridge, NeMo or Primus: leaves by name.
Settings read_yaml_settings(const std::string& framework, const std::string& file,
                            const std::string& text);
// TOML and JSON: leaves by path.
Settings read_toml_settings(const std::string& framework, const std::string& file,
                            const std::string& text);
Settings read_json_settings(const std::string& framework, const std::string& file,
                            const std::string& text);

}  // namespace pipesim
