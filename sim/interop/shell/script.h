// The commands that a launch script would run, found by evaluating its words; none is executed.
//
// Variables, arrays, defaults, arithmetic, conditions, functions and loops have bash's meaning. A
// value from outside (an unset variable, $1, a program's output, the presence of a file) is unknown
// unless it is given. Texts carry it as a mark. A condition on it takes every branch, and variables
// that differ after the branches become unknown as well.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// A mark in a text stands for what is not known.
struct ShellUnknown {
  std::vector<std::string> names;         // NAME=value of these would tell
  std::vector<std::string> alternatives;  // texts that branches leave; empty: any
  bool unset = false;                     // a variable that nothing sets
};

struct ShellValue {
  std::string text;
  Location where;
};

struct ShellCommand {
  std::vector<ShellValue> words;
  std::vector<std::string> conditions;  // names that decide whether it runs
};

struct ShellScript {
  std::vector<ShellCommand> commands;  // programs that it would run, in order
  // Variables whose text begins with an option, for scripts without a command.
  std::vector<std::pair<std::string, ShellCommand>> lists;
  std::vector<ShellUnknown> unknowns;
  std::vector<std::string> assumed;      // variables that were taken as not set
  std::vector<int> passed;               // lines of checks that would have ended the script
  std::vector<std::string> not_sourced;  // "env.sh (line 3)"
  std::vector<std::string> mentioned;    // names of variables
  // Values that conditions compare a name from outside with, in order.
  std::map<std::string, std::vector<std::string>> compared;
  std::map<std::string, ShellValue> slurm;  // options of #SBATCH, by name with underscores

  [[nodiscard]] static bool is_known(const std::string& text);
  // The unknowns that stand in a text, without repetition.
  [[nodiscard]] std::vector<size_t> unknowns_in(const std::string& text) const;
  // A text for people, with $NAME where it is unknown.
  [[nodiscard]] std::string readable(const std::string& text) const;
};

// Another script's text, by the path that `source` names; nothing where there is none.
using ShellReader = std::function<std::optional<std::string>(const std::string& path)>;

// `given` replaces the script's values by name: NNODES, 1 (of $1), if:12 (the condition in line 12:
// true or false). InputError at text that cannot be read, or at a loop without an end.
ShellScript evaluate_shell(const std::string& file, const std::string& text,
                           const std::map<std::string, std::string>& given,
                           const ShellReader& reader);

}  // namespace pipesim
