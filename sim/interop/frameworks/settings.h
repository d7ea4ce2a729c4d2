// Settings of a training framework, by name, with where they stand, and what became of each.
//
// Names are the framework's with underscores: `--num-layers` is num_layers. In nested files a name
// is the last part of a path where leaves bear Megatron's names (Megatron's YAML, Bridge and NeMo).
// Elsewhere (torchtitan, DeepSpeed) it is the whole path with dots. Where a name is set twice the
// last one holds.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

struct Setting {
  std::string name;
  std::vector<std::string> values;  // none: a flag that stands for itself
  Location where;
  bool taken = false;
  std::vector<std::string> asks = {};          // variables of a script that its value needs
  std::vector<std::string> alternatives = {};  // that its value can be; empty: any
  bool usual = false;                          // a default that the framework's own file states
  bool given = false;                          // beside the file, as NAME=value

  [[nodiscard]] std::string text() const;  // values with blanks between
};

// A question about a script, which NAME=value answers.
struct Asked {
  std::vector<std::string> what;   // settings, or what else depends on it
  std::vector<std::string> names;  // variables
  std::vector<std::string> alternatives;
  Location where;
};

// Settings not taken, by the catalogue's (models/catalog/frameworks.yaml) knowledge of them.
struct Untaken {
  int without_effect = 0;
  std::vector<std::string> not_modelled;  // "name value (line 12)"
  std::vector<std::string> unknown;
  // Settings among both that change model, schedule, precision, memory or sizes, by name.
  std::vector<std::pair<std::string, std::string>> stops;
};

class Settings {
 public:
  Settings(std::string framework, std::string file)
      : framework_(std::move(framework)), file_(std::move(file)) {}

  void add(Setting setting);
  // NAME=value beside the file; one that names a variable of the script is no setting.
  void give(const std::string& name, const std::string& value, const Location& where);

  // Each marks what it finds as taken. `names`: the first that is set. A value that says nothing
  // (null, None) counts as not set.
  [[nodiscard]] const Setting* find(std::initializer_list<const char*> names);
  [[nodiscard]] std::optional<std::string> text(std::initializer_list<const char*> names);
  // InputError at a setting that is no whole number from `least` on.
  [[nodiscard]] std::optional<long> number(std::initializer_list<const char*> names,
                                           long least = 0);
  [[nodiscard]] std::optional<double> real(std::initializer_list<const char*> names);
  // The number that the catalogue has as this setting's default. InputError: it has none.
  [[nodiscard]] long number_or_usual(const char* name);
  // A flag without a value is true.
  [[nodiscard]] std::optional<bool> flag(std::initializer_list<const char*> names);
  // True where one of them is, whatever the others say.
  [[nodiscard]] bool is_set(std::initializer_list<const char*> names) {
    bool set = false;
    for (const char* name : names) set = flag({name}).value_or(false) || set;
    return set;
  }

  // Renames the settings whose names begin with `section`, or takes them as without effect.
  void move_section(const std::string& section, const std::string& to);
  void leave_out(const std::string& section);

  [[nodiscard]] Untaken untaken() const;
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool empty() const { return settings_.empty(); }
  // The names are Megatron-LM's: not those of torchtitan and DeepSpeed.
  [[nodiscard]] bool is_megatron() const {
    return framework_ != "torchtitan" && framework_ != "deepspeed";
  }
  [[nodiscard]] bool has(const std::string& name) const;
  // The setting's place; the file's first line if the file lacks it.
  [[nodiscard]] Location place(const std::string& name) const;
  // A value that is known and says something; the setting is not taken.
  [[nodiscard]] std::optional<std::string> seen(const std::string& name) const;
  [[nodiscard]] bool is_given(const std::string& name) const;  // beside the file

  // ---- of scripts ----
  void ask(Asked asked) { asked_.push_back(std::move(asked)); }
  void note(const std::string& note);
  void set_command(std::string command) { command_ = std::move(command); }
  void set_variables(std::set<std::string> names) { variables_ = std::move(names); }
  // Values that a script compares its variables with.
  void set_compared(std::map<std::string, std::vector<std::string>> values) {
    compared_ = std::move(values);
  }
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& compared() const {
    return compared_;
  }
  // All that is asked for: by ask(), by settings that were looked for, and by others of effect.
  [[nodiscard]] std::vector<Asked> asked() const;
  // A setting of unknown value that was looked for.
  [[nodiscard]] bool asks(const char* name) const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const std::string& command() const { return command_; }

  // ---- of the catalogue ----
  // True for a name of scenarios or of the catalogue, and for one without effect.
  [[nodiscard]] bool counts(const std::string& name) const;
  // The only known name whose last word `name` cuts short, as Python's argparse takes it; else
  // `name`.
  [[nodiscard]] std::string whole_name(const std::string& name) const;
  [[nodiscard]] bool has_effect(const std::string& name) const;
  [[nodiscard]] bool is_flag(const std::string& name) const;
  // True for the program of a model that is no decoder alone: BERT, T5, or one of
  // refuse_other_models.
  [[nodiscard]] bool trains_other_model(const std::string& program) const;
  // InputError at a setting or program of a model that scenarios cannot describe (other_models in
  // frameworks.yaml).
  void refuse_other_models() const;
  // InputError at a file without a setting that says how to train (marks in frameworks.yaml).
  void refuse_other_files() const;

 private:
  // Taken, asked for, or a variable of the script.
  [[nodiscard]] bool leaves_out(const Setting& setting) const;

  std::string framework_;
  std::string file_;
  std::vector<Setting> settings_;
  std::vector<Asked> asked_;
  std::vector<std::string> notes_;
  std::string command_;              // of a script, that was taken
  std::set<std::string> variables_;  // of a script
  std::map<std::string, std::vector<std::string>> compared_;
};

// NAME=value beside a file.
using Given = std::map<std::string, std::string>;
// The text of a script that another one sources, by its path.
using ScriptReader = std::function<std::optional<std::string>(const std::string& path)>;

// From a launch script or a list of arguments: the command that trains, by evaluating the script's
// words (sim/interop/shell/script.h); nothing is run. `given` names variables of the script. A line
// "# start N processes", as `pipesim export` writes it, says the world size.
Settings read_arguments(
    const std::string& file, const std::string& text, const Given& given = {},
    const ScriptReader& reader = [](const std::string&) { return std::nullopt; });

// Reads Megatron-LM's YAML, or a configuration of Megatron-Bridge, NeMo or Primus: leaves by name.
// Sections of logs, files and tokenizers are left out. A leaf of a section that belongs to a
// setting (ddp, dataset) takes precedence over others. Interpolations are resolved, named files are
// read.
Settings read_yaml_settings(
    const std::string& framework, const std::string& file, const std::string& text,
    const Given& given = {},
    const ScriptReader& reader = [](const std::string&) { return std::nullopt; });
// Adds what Primus' own settings say under Megatron-LM's names.
void rename_primus_settings(Settings& settings);
// YAML of a framework that says Megatron-LM's settings by other names (GPT-NeoX, nanotron). It is
// known by paths that only its files have; nothing where it is none of these.
std::optional<Settings> read_renamed_settings(const std::string& file, const std::string& text);
// TOML and JSON: leaves by path. A word in place of a JSON value is a template's, asked for by
// name.
Settings read_toml_settings(const std::string& framework, const std::string& file,
                            const std::string& text);
Settings read_json_settings(const std::string& framework, const std::string& file,
                            const std::string& text, const Given& given = {});

}  // namespace pipesim
