#include "app/options/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipesim {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Text of a man page: a backslash, a hyphen and a dot that begins a line would mean something.
std::string roff(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  if (text.starts_with('.') || text.starts_with('\'')) text.insert(0, "\\&");
  return replaced(std::move(text), "\n.", "\n\\&.");
}

std::string value_of(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, "|"));
  return "VALUE";
}

std::string man_option(const OptionText& option) {
  std::string head =
      fmt::format("\\fB{}\\fR", roff(fmt::format("{}", fmt::join(option.names, ", "))));
  if (option.takes_value && !option.positional) {
    head += fmt::format(" \\fI{}\\fR", roff(value_of(option)));
  }
  return fmt::format(".TP\n{}\n{}\n", head, roff(option.help));
}

std::string man_command(const Parser& command) {
  std::string text = fmt::format(".SS {}\n{}.\n", roff(command.name()), roff(command.help()));
  for (const OptionText& option : command.options()) text += man_option(option);
  if (!command.examples().empty()) {
    text += fmt::format(".PP\nExamples:\n.PP\n.nf\n{}\n.fi\n", roff(command.examples()));
  }
  return text;
}

std::vector<std::string> dashed_names(const Parser& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options()) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::string bash_values(const Parser& command) {
  std::string text;
  for (const OptionText& option : command.options()) {
    if (option.choices.empty() || option.positional) continue;
    for (const std::string& name : option.names) {
      text += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n",
                          command.name(), name, fmt::join(option.choices, " "));
    }
  }
  return text;
}

// Between single quotes.
std::string quoted(const std::string& text) { return replaced(text, "'", "'\\''"); }

std::string zsh_option(const OptionText& option) {
  const std::string help =
      quoted(replaced(replaced(replaced(option.help, "[", "\\["), "]", "\\]"), ":", "\\:"));
  std::string values = "_files";
  if (!option.choices.empty()) values = fmt::format("({})", fmt::join(option.choices, " "));
  if (option.positional) return fmt::format("    '*:{}:{}'", option.names.front(), values);
  std::string text;
  for (const std::string& name : option.names) {
    if (!text.empty()) text += " \\\n";
    text += fmt::format("    '{}[{}]{}'", name, help,
                        option.takes_value ? fmt::format(":value:{}", values) : "");
  }
  return text;
}

std::string zsh_command(const Parser& command) {
  std::string text = fmt::format("  {})\n    _arguments", command.name());
  bool positional = false;
  for (const OptionText& option : command.options()) {
    if (option.positional && positional) continue;  // the first says all that follow
    positional = positional || option.positional;
    text += " \\\n" + zsh_option(option);
  }
  return text + "\n    ;;\n";
}

std::string fish_option(const Parser& command, const OptionText& option) {
  std::string text =
      fmt::format("complete -c pipesim -n '__fish_seen_subcommand_from {}'", command.name());
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                   : fmt::format(" -s {}", name.substr(1));
  }
  if (!option.choices.empty()) {
    text += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
  } else if (option.takes_value) {
    text += " -r";
  }
  return text +
         fmt::format(" -d '{}'\n", replaced(replaced(option.help, "\\", "\\\\"), "'", "\\'"));
}

std::vector<std::string> command_names(const Parser& program) {
  std::vector<std::string> names;
  for (const auto& command : program.commands()) names.push_back(command->name());
  return names;
}

}  // namespace

std::string man_page(const Parser& program, const std::string& version) {
  std::string text = fmt::format(
      ".TH PIPESIM 1 \"\" \"pipesim {}\"\n.SH NAME\npipesim \\- {}\n.SH SYNOPSIS\n"
      ".B pipesim\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIpath.to.key=value\\fR ...]\n.SH "
      "COMMANDS\n",
      version, roff(program.help()));
  for (const auto& command : program.commands()) text += man_command(*command);
  return text +
         ".SH EXIT STATUS\n0: done. 1: a check failed, or the request cannot be met. 2: bad "
         "input.\n"
         ".SH FILES\nScenarios are YAML files; docs/reference/scenario.md has their keys.\n"
         ".SH SEE ALSO\ndocs/README.md\n";
}

std::string bash_completion(const Parser& program) {
  std::string values;
  std::string names;
  for (const auto& command : program.commands()) {
    values += bash_values(*command);
    names += fmt::format("      {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;\n",
                         command->name(), fmt::join(dashed_names(*command), " "));
  }
  return fmt::format(
      "# Completion of pipesim for bash, made from its command line.\n"
      "_pipesim() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}} $prev\" in\n{}  esac\n"
      "  case \"$cur\" in\n"
      "    -*) case \"${{COMP_WORDS[1]}}\" in\n{}      esac ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _pipesim pipesim\n",
      fmt::join(command_names(program), " "), values, names);
}

std::string zsh_completion(const Parser& program) {
  std::string commands;
  std::string options;
  for (const auto& command : program.commands()) {
    commands += fmt::format("    '{}:{}'\n", command->name(),
                            quoted(replaced(command->help(), ":", "\\:")));
    options += zsh_command(*command);
  }
  return fmt::format(
      "#compdef pipesim\n"
      "# Completion of pipesim for zsh, made from its command line.\n"
      "if (( CURRENT == 2 )); then\n  local -a commands=(\n{}  )\n"
      "  _describe command commands\n  return\nfi\n"
      "shift words\n(( CURRENT-- ))\ncase $words[1] in\n{}esac\n",
      commands, options);
}

std::string fish_completion(const Parser& program) {
  std::string text = "# Completion of pipesim for fish, made from its command line.\n";
  for (const auto& command : program.commands()) {
    text += fmt::format("complete -c pipesim -n __fish_use_subcommand -x -a {} -d '{}'\n",
                        command->name(), replaced(command->help(), "'", "\\'"));
    for (const OptionText& option : command->options()) {
      if (!option.positional) text += fish_option(*command, option);
    }
  }
  return text;
}

}  // namespace pipesim
