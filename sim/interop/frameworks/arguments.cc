// Launch scripts: which of their commands trains, and its arguments as settings.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <sstream>

#include "sim/interop/frameworks/settings.h"
#include "sim/interop/shell/script.h"

namespace pipesim {
namespace {

std::string name_of(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  name.erase(0, 2);
  std::ranges::replace(name, '-', '_');
  return name;
}
bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

// "# start N processes", as `pipesim export` writes it.
std::optional<Setting> processes_of(const std::string& file, const std::string& text) {
  constexpr std::string_view kStart = "# start ";
  const size_t at = text.find(kStart);
  const size_t end = at == std::string::npos ? at : text.find(" processes", at);
  if (end == std::string::npos || (at > 0 && text[at - 1] != '\n')) return std::nullopt;
  const size_t begin = at + kStart.size();
  const int line =
      1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  return Setting{"world_size", {text.substr(begin, end - begin)}, {file, line, 1, ""}};
}

// A command with how much it says of a training run.
struct Candidate {
  const ShellCommand* command;
  int settings = 0;
  std::string program = {};
};

// True if the program's file has one of the words in its name.
bool is_named(const std::string& program, std::span<const std::string_view> words) {
  const std::string file = program.substr(program.rfind('/') + 1);
  return std::ranges::any_of(
      words, [&](std::string_view word) { return file.find(word) != std::string::npos; });
}

// Programs that prepare, convert and ask a model, whose options are partly those of training.
bool is_tool(const std::string& program) {
  static constexpr std::array<std::string_view, 11> kTools{
      "eval",   "preprocess", "convert",  "checkpoint_util", "inference", "generat",
      "server", "merge",      "download", "benchmark_",      "analyze_"};
  const bool in_folder =
      program.starts_with("tools/") || program.find("/tools/") != std::string::npos;
  return in_folder || is_named(program, kTools);
}

Candidate candidate_of(const ShellCommand& command, const Settings& settings) {
  Candidate made{&command};
  for (const ShellValue& word : command.words) {
    if (is_option(word.text)) {
      made.settings += settings.counts(name_of(word.text)) ? 1 : 0;
    } else if (word.text.ends_with(".py") || made.program.empty()) {
      made.program = word.text;
    }
  }
  return made;
}

std::string said_of(const ShellScript& script, const Candidate& candidate) {
  return fmt::format("line {} ({})", candidate.command->words.front().where.line,
                     script.readable(candidate.program));
}

// The command that says most of a training run, the first of equals; `command=N` says another.
class Choice {
 public:
  Choice(const ShellScript& script, const std::string& asked, Settings& settings) {
    for (const ShellCommand& command : script.commands) {
      if (!command.words.empty() && is_option(command.words[0].text)) {
        flags_.words.insert(flags_.words.end(), command.words.begin(), command.words.end());
        continue;
      }
      const Candidate candidate = candidate_of(command, settings);
      if (candidate.settings == 0) continue;
      if (!is_tool(candidate.program)) {
        candidates_.push_back(candidate);
      } else if (tool_.empty()) {
        tool_ = said_of(script, candidate);
      }
    }
    if (!asked.empty()) {
      for (size_t i = 0; i < candidates_.size(); ++i) {
        if (asked == fmt::format("{}", i + 1)) best_ = &candidates_[i];
      }
    }
    for (const Candidate& each : candidates_) {
      if (asked.empty() && (best_ == nullptr || each.settings > best_->settings)) best_ = &each;
    }
    if (best_ != nullptr) name(script, settings);
  }

  // The program, as a setting, if its name says which kind of model it trains.
  [[nodiscard]] std::optional<Setting> telling_program(const ShellScript& script,
                                                       const Settings& settings) const {
    static constexpr std::array<std::string_view, 2> kDecoders{"gpt", "mamba"};
    if (best_ == nullptr) return std::nullopt;
    const std::string& program = best_->program;
    if (!settings.trains_other_model(program) && !is_named(program, kDecoders)) return std::nullopt;
    return Setting{"program", {script.readable(program)}, best_->command->words.front().where};
  }
  // The command `megatron` of ms-swift.
  [[nodiscard]] bool is_swift() const { return best_ != nullptr && best_->program == "megatron"; }
  // The first command that does something else, where none trains; empty: there is none.
  [[nodiscard]] std::string tool() const { return candidates_.empty() ? tool_ : ""; }
  // Null: there is none.
  [[nodiscard]] const ShellCommand* command() const {
    if (best_ != nullptr) return best_->command;
    return flags_.words.empty() ? nullptr : &flags_;
  }

 private:
  void name(const ShellScript& script, Settings& settings) const {
    std::vector<std::string> others;
    std::vector<std::string> names = best_->command->conditions;
    bool contested = false;
    for (const Candidate& each : candidates_) {
      if (&each == best_) continue;
      const std::string other = said_of(script, each);
      if (std::ranges::count(others, other) == 0) others.push_back(other);
      if (2 * each.settings < best_->settings) continue;
      contested = contested || !each.command->conditions.empty();
      names.insert(names.end(), each.command->conditions.begin(), each.command->conditions.end());
    }
    std::string said = said_of(script, *best_);
    if (!others.empty()) said += fmt::format("; left out: {}", fmt::join(others, ", "));
    if (!flags_.words.empty()) {
      said += fmt::format("; left out: arguments of no command from line {} on",
                          flags_.words.front().where.line);
    }
    settings.set_command(said);
    if (contested && !names.empty()) settings.ask({{"the command that trains"}, names, {}, {}});
    for (const std::string& path : script.not_sourced) {
      settings.note(fmt::format("{} is not here, and nothing of it is known", path));
    }
  }

  std::vector<Candidate> candidates_;
  ShellCommand flags_;  // options that stand alone: a list of arguments
  const Candidate* best_ = nullptr;
  std::string tool_;
};

// Words as options and their values.
class ArgumentReader {
 public:
  ArgumentReader(const ShellScript& script, Settings& settings)
      : script_(script), settings_(settings) {}

  void read(const std::vector<ShellValue>& words) {
    const bool starts = !words.empty() && is_launcher(words[0].text);
    for (const ShellValue& word : words) {
      if (stands_alone(word.text)) {
        ask_about(word);
      } else if (is_option(word.text)) {
        begin(word);
      } else if (const char* name = starts ? launched(word.text) : nullptr) {
        close();
        open_ = Setting{name, {}, word.where};
      } else if (word.text.ends_with(".py")) {
        close();  // the program: what follows is its own
      } else if (open_) {
        open_->values.push_back(word.text);
      }
    }
    close();
  }

 private:
  static bool is_launcher(const std::string& word) {
    static constexpr std::array<std::string_view, 4> kLaunchers{"srun", "mpirun", "mpiexec",
                                                                "orterun"};
    return std::ranges::count(kLaunchers, word.substr(word.rfind('/') + 1)) > 0;
  }
  static const char* launched(const std::string& word) {
    if (word == "-N") return "nodes";
    return word == "-n" || word == "-np" ? "ntasks" : nullptr;
  }
  void begin(const ShellValue& word) {
    close();
    open_ = Setting{settings_.whole_name(script_.readable(name_of(word.text))), {}, word.where};
    const size_t equals = word.text.find('=');
    if (equals != std::string::npos) open_->values.push_back(word.text.substr(equals + 1));
  }
  void close() {
    if (!open_) return;
    for (std::string& value : open_->values) {
      for (const size_t id : script_.unknowns_in(value)) {
        const ShellUnknown& unknown = script_.unknowns[id];
        open_->asks.insert(open_->asks.end(), unknown.names.begin(), unknown.names.end());
        add_alternatives(unknown, *open_);
        if (unknown.names.empty()) open_->asks.push_back(open_->name);
      }
      value = script_.readable(value);
    }
    settings_.add(std::move(*open_));
    open_.reset();
  }
  // Texts that branches leave. Alternatives of a condition within another stand beside its own,
  // and names that one of them needs are asked for as well.
  void add_alternatives(const ShellUnknown& unknown, Setting& to) const {
    for (const std::string& each : unknown.alternatives) {
      const auto inner = script_.unknowns_in(each);
      const bool whole = inner.size() == 1 && each.find('\x02') + 1 == each.size();
      if (whole && !script_.unknowns[inner[0]].alternatives.empty()) {
        add_alternatives(script_.unknowns[inner[0]], to);
        continue;
      }
      to.alternatives.push_back(script_.readable(each));
      for (const size_t id : inner) {
        const std::vector<std::string>& names = script_.unknowns[id].names;
        to.asks.insert(to.asks.end(), names.begin(), names.end());
      }
    }
  }
  // Options or nothing, also where a branch within decides which.
  [[nodiscard]] bool is_options(const std::string& text, int depth) const {
    const size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string::npos || text.compare(begin, 2, "--") == 0) return true;
    const auto inner = script_.unknowns_in(text);
    if (text[begin] != '\x01' || inner.empty() || depth == kDeepest) return false;
    const auto& others = script_.unknowns[inner[0]].alternatives;
    return !others.empty() && std::ranges::all_of(others, [&](const auto& each) {
      return is_options(each, depth + 1);
    });
  }
  // A word that is not known, and no value of the option before it.
  [[nodiscard]] bool stands_alone(const std::string& word) const {
    const auto ids = script_.unknowns_in(word);
    if (ids.size() != 1 || word.front() != '\x01' || word.back() != '\x02') return false;
    const std::vector<std::string>& others = script_.unknowns[ids[0]].alternatives;
    if (!others.empty()) {
      return std::ranges::all_of(others, [this](const auto& each) { return is_options(each, 0); });
    }
    return !open_ || !open_->values.empty() || settings_.is_flag(open_->name);
  }
  // Adds the options with an effect in one alternative of a branch, and asks for the variables in
  // their values.
  void add_options(const std::string& text, const Location& where,
                   std::vector<std::string>& options, int depth = 0) const {
    std::istringstream words(text);
    std::string open;
    for (std::string word; words >> word;) {
      if (is_option(word)) {
        open = settings_.has_effect(name_of(word)) ? name_of(word) : "";
        if (!open.empty()) options.push_back(open);
      }
      for (const size_t id : script_.unknowns_in(word)) {
        const ShellUnknown& inner = script_.unknowns[id];
        if (depth < kDeepest && is_options(word, depth)) {
          for (const std::string& each : inner.alternatives) {
            add_options(each, where, options, depth + 1);
          }
        } else if (!open.empty()) {
          settings_.ask({{open}, inner.names, {}, where});
        }
      }
    }
  }
  void ask_about(const ShellValue& word) {
    close();
    const ShellUnknown& unknown = script_.unknowns[script_.unknowns_in(word.text)[0]];
    if (unknown.unset && script_.not_sourced.empty()) {
      settings_.note(fmt::format("{} is not set", fmt::join(unknown.names, ", ")));
      return;
    }
    std::vector<std::string> options;
    for (const std::string& each : unknown.alternatives) add_options(each, word.where, options);
    if (!unknown.alternatives.empty() && options.empty()) return;
    if (options.empty()) options.emplace_back("arguments of the command");
    settings_.ask({options, unknown.names, {}, word.where});
  }

  static constexpr int kDeepest = 16;  // branches within branches

  const ShellScript& script_;
  Settings& settings_;
  std::optional<Setting> open_;
};

// A script without an argument of Megatron-LM says nothing: the program that it starts is named.
void refuse_other_programs(const std::string& file, const ShellScript& script,
                           const Settings& settings) {
  if (!settings.empty() || script.commands.empty()) return;
  std::string program;
  Location where{file, 0, 0, ""};
  for (const ShellCommand& command : script.commands) {
    for (const ShellValue& word : command.words) {
      const bool module = word.text.find(".trainer.") != std::string::npos ||
                          word.text.find(".cli.") != std::string::npos;
      if (!program.empty() || (!module && !word.text.ends_with(".py"))) continue;
      program = word.text;
      where = word.where;
    }
  }
  throw InputError(
      where, fmt::format("{} no argument of Megatron-LM, such as --num-layers: pipesim simulates "
                         "steps of training alone; say their sizes in a file of such arguments",
                         program.empty() ? "the commands have"
                                         : fmt::format("{} has", script.readable(program))));
}

// The values that ms-swift has where its command names none (swift/megatron/arguments).
void add_swift(Settings& settings) {
  const auto add = [&settings](const char* name, const std::string& value) {
    if (settings.has(name)) return;
    Setting setting{name, {value}, settings.place(name)};
    setting.usual = true;
    settings.add(std::move(setting));
  };
  if (const auto length = settings.seen("max_length")) add("seq_length", *length);
  if (!settings.has("bf16") && !settings.has("fp16")) {
    add("bf16", "true");
    settings.note("bf16: ms-swift takes the precision of the checkpoint");
  }
  static constexpr std::array<std::pair<const char*, const char*>, 5> kUsual{
      {{"hidden_dropout", "0"},
       {"attention_dropout", "0"},
       {"use_distributed_optimizer", "true"},
       {"cross_entropy_loss_fusion", "true"},
       {"recompute_granularity", "selective"}}};
  for (const auto& [name, value] : kUsual) add(name, value);
}

// The job's sizes, where the command has none of its own.
void add_slurm(const ShellScript& script, Settings& settings) {
  for (const auto& [option, name] : {std::pair("nodes", "nodes"),
                                     {"gpus_per_node", "gpus_per_node"},
                                     {"gres", "gpus_per_node"},
                                     {"ntasks_per_node", "ntasks_per_node"},
                                     {"ntasks", "ntasks"},
                                     {"gpus", "world_size"}}) {
    const auto found = script.slurm.find(option);
    if (found == script.slurm.end() || settings.has(name)) continue;
    const std::string& value = found->second.text;  // a template's is a word
    if (value.find_first_not_of("0123456789") != std::string::npos) continue;
    settings.add({name, {found->second.text}, found->second.where});
  }
}

}  // namespace

Settings read_arguments(const std::string& file, const std::string& text, const Given& given,
                        const ScriptReader& reader) {
  const ShellScript script = evaluate_shell(file, text, given, reader);
  Settings settings("megatron", file);
  std::set<std::string> names(script.mentioned.begin(), script.mentioned.end());
  for (const auto& [name, value] : given) {
    // Branches that are not taken name variables as well.
    if (text.find("$" + name) != std::string::npos || text.find("${" + name) != std::string::npos) {
      names.insert(name);
    }
  }
  settings.set_variables(std::move(names));
  settings.set_compared(script.compared);
  const auto asked = given.find("command");
  const Choice choice(script, asked == given.end() ? "" : asked->second, settings);
  ArgumentReader arguments(script, settings);
  if (const ShellCommand* command = choice.command()) {
    arguments.read(command->words);
  } else if (!choice.tool().empty()) {
    throw InputError({file, 0, 0, ""},
                     fmt::format("expected a command that trains; here is {}", choice.tool()));
  } else {
    for (const auto& [name, list] : script.lists) {
      arguments.read(list.words);
      settings.note(fmt::format("no command is in the file, and {} has its arguments", name));
    }
  }
  for (const std::string& name : script.assumed) settings.note(fmt::format("{} is not set", name));
  for (const int line : script.passed) {
    settings.note(fmt::format("the check of line {}, which ends the script, is passed", line));
  }
  refuse_other_programs(file, script, settings);
  if (auto program = choice.telling_program(script, settings)) settings.add(std::move(*program));
  if (choice.is_swift()) add_swift(settings);
  add_slurm(script, settings);
  if (auto processes = processes_of(file, text)) settings.add(std::move(*processes));
  return settings;
}

}  // namespace pipesim
