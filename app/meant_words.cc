#include "app/meant_words.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "app/orders.h"
#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/read/short_names.h"
#include "sim/read/sweep_text.h"

namespace pipesim {
namespace {

bool takes_settings(const Parser& command) {
  return std::ranges::any_of(command.options(), [](const OptionText& option) {
    return option.positional && option.names.front() == "overrides";
  });
}

class Words {
 public:
  Words(const CommandLine& line, const Parser& command)
      : line_(line),
        words_(line.arguments()),
        places_(places_of(line)),
        command_(command),
        names_(command.option_names()) {}

  std::vector<MeantWord> meant() {
    const bool settings = takes_settings(command_);
    for (size_t i = 1; i < words_.size(); ++i) {
      if (!words_[i].starts_with("--") || words_[i] == "--") continue;
      if (!complete(i) && settings) make_setting(i);
    }
    const auto unknown = [this](const std::string& word) { return is_unknown(word); };
    if (settings && std::ranges::none_of(words_, unknown)) name_schedules();
    for (size_t i = 0; i < words_.size(); ++i) places_[i].text = words_[i];
    return places_;
  }

  static std::vector<MeantWord> places_of(const CommandLine& line) {
    std::vector<MeantWord> places;
    for (const std::string& word : line.arguments()) {
      places.push_back({.text = word, .typed = places.size()});
    }
    return places;
  }

 private:
  // True for an option that the command does not have: nobody knows whether a value follows.
  [[nodiscard]] bool is_unknown(const std::string& word) const {
    if (word.size() < 2 || !word.starts_with("-")) return false;
    return !is_option(word.substr(0, word.starts_with("--") ? word.find('=') : 2));
  }
  [[nodiscard]] bool is_option(const std::string& name) const {
    return std::ranges::find(names_, name) != names_.end();
  }

  // Turns `--key value` into `key=value`, where it is one of the settings.
  void make_setting(size_t i) {
    const std::string name = words_[i].substr(0, words_[i].find('='));
    if (!stands_alone(name.substr(2))) return;
    const bool apart =
        words_[i] == name && i + 1 < words_.size() && !words_[i + 1].starts_with("--");
    words_[i].erase(0, 2);
    places_[i].skipped = 2;
    if (!apart) return;
    words_[i] += "=" + words_[i + 1];
    erase(i + 1);
  }

  void erase(size_t i) {
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
    places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // False where the word is no option, nor the beginning of one alone.
  bool complete(size_t i) {
    const size_t length = std::min(words_[i].find('='), words_[i].size());
    const std::string name = words_[i].substr(0, length);
    const auto begins = [&name](const std::string& each) { return each.starts_with(name); };
    if (is_option(name)) return true;
    if (std::ranges::count_if(names_, begins) != 1) return false;
    const std::string whole = *std::ranges::find_if(names_, begins);
    words_[i].replace(0, length, whole);
    places_[i].longer = static_cast<int>(whole.size() - length);
    return true;
  }

  [[nodiscard]] bool takes_value(const std::string& word) const {
    return std::ranges::any_of(command_.options(), [&word](const OptionText& option) {
      return option.takes_value && !option.positional &&
             std::ranges::find(option.names, word) != option.names.end();
    });
  }

  // A schedule's name has neither '=' nor '.'; its file has an extension.
  [[nodiscard]] static bool names_schedule(const std::string& word) {
    if (word.starts_with("-") || word.find('=') != std::string::npos) return false;
    return is_order_file(word) || (word.find('.') == std::string::npos && !stands_alone(word));
  }

  // One for each time that the scenario has it, with the options there; else the name alone.
  static std::vector<std::string> values_of(const std::string& word, const std::string& scenario) {
    std::vector<std::string> own;
    if (is_order_file(word)) return {schedule_value(reached(word, scenario))};
    for (const auto& [name, entry] : schedules_of(scenario)) {
      if (!same_name(word, std::vector{name}).empty()) own.push_back(entry);
    }
    return own.empty() ? std::vector{schedule_value(word)} : own;
  }

  // A file of the current folder, where the scenario's folder has one of that name too.
  static std::string reached(const std::string& word, const std::string& scenario) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path beside = fs::path(scenario).parent_path() / word;
    const bool both = fs::exists(word, ignored) && fs::exists(beside, ignored) &&
                      !fs::equivalent(word, beside, ignored);
    return both ? fs::absolute(word).string() : word;
  }

  // None where the scenario cannot be read, which the command says.
  static std::vector<std::pair<std::string, std::string>> schedules_of(
      const std::string& scenario) {
    try {
      return read_sweep_text(scenario, read_input(scenario, {})).schedules;
    } catch (const InputError&) {
      return {};
    }
  }

  void refuse_without_scenario(const std::string& word) const {
    const bool help = std::ranges::any_of(
        words_, [](const std::string& each) { return each == "-h" || each == "--help"; });
    if (help || std::filesystem::exists(word)) return;
    if (same_name(word, schedule_names()).empty()) return;
    throw InputError(line_.where(word),
                     fmt::format("'{}' is a schedule, and a scenario comes before it, such as "
                                 "scenarios/quickstart.yaml; `pipesim list {}` says what it is",
                                 word, same_name(word, schedule_names())));
  }

  // In a list the value as a whole would be the place of a word that no schedule has.
  void check_schedule(size_t i, const std::string& scenario, bool families) const {
    const std::string& word = words_[i];
    const std::vector<std::string> known = schedule_names();
    if (is_order_file(word) || !same_name(word, known).empty()) return;
    if (!families && values_of(word, scenario) != std::vector{schedule_value(word)}) return;
    throw InputError(line_.where(places_[i].typed),
                     fmt::format("schedule '{}' is not known{}", word, suggestion(word, known)));
  }

  void name_schedules() {
    std::vector<size_t> places;
    std::string scenario;
    for (size_t i = 1; i < words_.size(); ++i) {
      if (takes_value(words_[i])) {
        ++i;
      } else if (!words_[i].starts_with("-") && scenario.empty()) {
        scenario = words_[i];
        refuse_without_scenario(scenario);
      } else if (names_schedule(words_[i])) {
        places.push_back(i);
      }
    }
    if (places.empty()) return;
    for (const std::string& each : words_) {
      if (!each.starts_with("schedule=")) continue;
      throw InputError(
          line_.where(words_[places.front()]),
          fmt::format("'{}' and '{}' both say the schedules", words_[places.front()], each));
    }
    const bool families = is_option("--schedules");
    std::vector<std::string> values;
    for (const size_t i : places) {
      if (places.size() > 1) check_schedule(i, scenario, families);
      const auto of_word = families ? std::vector{words_[i]} : values_of(words_[i], scenario);
      values.insert(values.end(), of_word.begin(), of_word.end());
    }
    while (places.size() > 1) {
      erase(places.back());
      places.pop_back();
    }
    words_[places.front()] = families ? fmt::format("--schedules={}", fmt::join(values, ","))
                             : values.size() == 1
                                 ? "schedule=" + values.front()
                                 : fmt::format("schedule=[{}]", fmt::join(values, ", "));
    places_[places.front()].longer = static_cast<int>(words_[places.front()].find('=')) + 1;
  }

  const CommandLine& line_;
  std::vector<std::string> words_;
  std::vector<MeantWord> places_;  // of each; their texts are filled last
  const Parser& command_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<MeantWord> meant_words(const CommandLine& line, const Parser& program) {
  const auto command = std::ranges::find(program.commands(), line.arguments().front(),
                                         [](const auto& each) { return each->name(); });
  if (command == program.commands().end()) return Words::places_of(line);
  return Words(line, **command).meant();
}

}  // namespace pipesim
