#include "app/options/parser.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <sstream>
#include <utility>

#include "sim/core/text.h"
#include "sim/core/wrapped.h"

namespace pipesim {
namespace {

// The choices in the help's form of one_of: "TEXT:{a,b}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open == std::string::npos || type.back() != '}') return {};
  std::istringstream list(type.substr(open + 1, type.size() - open - 2));
  std::vector<std::string> choices;
  for (std::string each; std::getline(list, each, ',');) choices.push_back(each);
  return choices;
}

// Help within 100 columns.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(kNames); }
  std::string make_option_desc(const CLI::Option* option) const override {
    // CLI11 indents the lines behind the first.
    return wrapped(Formatter::make_option_desc(option), kColumns - kNames);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return fmt::format("  {:<{}}{}\n", command->get_name(), kCommands, command->get_description());
  }

 private:
  static constexpr size_t kColumns = 100;
  static constexpr size_t kNames = 30;
  static constexpr size_t kCommands = 13;
};

// An option that an earlier release had.
bool is_retired(const CLI::Option& option) { return option.get_group().empty(); }

// CLI11 compares, which accepts nan: every comparison with it is false.
bool is_nan(const std::string& text) { return std::isnan(std::strtod(text.c_str(), nullptr)); }

// CLI11's check, with our words for a value that it refuses. The help keeps CLI11's description.
CLI::Validator worded(const CLI::Validator& check, const std::string& expected) {
  return {[check, expected](std::string& text) {
            const bool valid = check(text).empty() && !is_nan(text);
            return valid ? "" : fmt::format("expected {}, not '{}'", expected, text);
          },
          check.get_description()};
}

}  // namespace

Option Option::required() { return Option(*option_->required()); }

Option Option::one_of(const std::vector<std::string>& values) {
  const CLI::IsMember check(values);
  const auto fault = [check, values](std::string& text) {
    if (check(text).empty()) return std::string();
    return fmt::format("'{}' is not known{}", text, suggestion(text, values));
  };
  return Option(*option_->check(CLI::Validator(fault, check.get_description())));
}

Option Option::range(int least, int most) {
  return Option(*option_->check(
      worded(CLI::Range(least, most), fmt::format("a whole number from {} to {}", least, most))));
}

Option Option::range(double least, double most) {
  return Option(*option_->check(
      worded(CLI::Range(least, most), fmt::format("a number from {} to {}", least, most))));
}

Option Option::positive() {
  return Option(*option_->check(worded(CLI::PositiveNumber, "a number above 0")));
}

Option Option::check(std::function<std::string(const std::string&)> fault) {
  return Option(*option_->check(std::move(fault)));
}

Option Option::excludes(const Option& other) { return Option(*option_->excludes(other.option_)); }

Option Option::one_each() { return Option(*option_->allow_extra_args(false)); }

Option Option::with_commas() { return Option(*option_->delimiter(',')->allow_extra_args(false)); }

Option Option::with_binary_units() {
  return Option(*option_->transform([](const std::string& text) {
    long number = 0;
    const char* end = text.data() + text.size();
    const auto [unit, error] = std::from_chars(text.data(), end, number);
    const std::string letter(unit, end);
    const bool kilo = letter == "k" || letter == "K";
    const bool mega = letter == "m" || letter == "M";
    constexpr long kMost = std::numeric_limits<int>::max();
    if (error != std::errc() || !(letter.empty() || kilo || mega) || number > kMost) {
      throw CLI::ValidationError(
          fmt::format("expected a whole number, such as 8192 or 8k, not '{}'", text));
    }
    return std::to_string(number << (kilo ? 10 : mega ? 20 : 0));
  }));
}

Option Option::with_default() { return Option(*option_->capture_default_str()); }

Parser::Parser(const std::string& name, const std::string& help)
    : root_(std::make_unique<CLI::App>(help, name)), app_(root_.get()) {
  app_->formatter(std::make_shared<Help>());
}

Parser::Parser(CLI::App& command) : app_(&command) {}

Parser::~Parser() = default;

template <class T>
Option Parser::add_option(const std::string& names, T& value, const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}

Option Parser::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(*app_->add_flag(names, value, help));
}

void Parser::add_threads() {
  add_option("-j,--threads", threads_, "Threads that work at once (default: as many as cores)")
      .range(1, 4096);
}

void Parser::retire(Option option, const std::string& hint) {
  option.option_->group("")->each([this, hint](const std::string&) { hints_.push_back(hint); });
}

void Parser::take_any() { app_->allow_extras(); }

void Parser::close_with(const std::string& text) { app_->footer(text); }

void Parser::add_version(const std::string& version) {
  app_->set_version_flag("--version", version);
}

void Parser::begin_group(const std::string& title) { next_group_ = title; }

Parser& Parser::add_command(const std::string& name, const std::string& help,
                            const std::string& examples) {
  CLI::App* command = app_->add_subcommand(name, help);
  if (!next_group_.empty()) command->group(next_group_);
  if (!examples.empty()) command->footer(command->get_footer() + "\n\nExamples:\n" + examples);
  commands_.emplace_back(new Parser(*command));
  commands_.back()->examples_ = examples;
  return *commands_.back();
}

void Parser::require_command() { app_->require_subcommand(1); }

bool Parser::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--html: 1 required TEXT missing"
    const std::string option = text.substr(0, text.find(':'));
    if (text.ends_with(" missing")) throw OptionError(option + " needs a value");
    const bool twice = text.find("At Most 1 required") != std::string::npos;
    throw OptionError(twice ? option + " is there more than once" : text);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw OptionError(error.what());
    app_->exit(error);
    return false;
  }
  return true;
}

bool Parser::chosen() const { return app_->parsed(); }

const Parser& Parser::chosen_command() const {
  for (const auto& command : commands_) {
    if (command->chosen()) return *command;
  }
  return *this;
}

std::string Parser::name() const { return app_->get_name(); }

std::string Parser::help() const { return app_->get_description(); }

std::string Parser::group() const { return app_->get_group(); }

std::string Parser::help_page() const { return app_->help(); }

std::vector<OptionText> Parser::options() const {
  std::vector<OptionText> options;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (is_retired(*option)) continue;
    OptionText& text = options.emplace_back();
    for (const std::string& name : option->get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) text.names.push_back("--" + name);
    text.positional = text.names.empty();
    if (text.positional) text.names.push_back(option->get_name(true));
    text.help = option->get_description();
    text.choices = choices_of(*option);
    text.takes_value = option->get_items_expected_max() > 0;
  }
  return options;
}

std::vector<std::string> Parser::option_names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

template Option Parser::add_option(const std::string&, std::string&, const std::string&);
template Option Parser::add_option(const std::string&, std::filesystem::path&, const std::string&);
template Option Parser::add_option(const std::string&, int&, const std::string&);
template Option Parser::add_option(const std::string&, long&, const std::string&);
template Option Parser::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Parser::add_option(const std::string&, double&, const std::string&);
template Option Parser::add_option(const std::string&, std::optional<std::string>&,
                                   const std::string&);
template Option Parser::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Parser::add_option(const std::string&, std::optional<long>&, const std::string&);
template Option Parser::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option Parser::add_option(const std::string&, std::vector<std::string>&,
                                   const std::string&);
template Option Parser::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option Parser::add_option(const std::string&, std::vector<double>&, const std::string&);

}  // namespace pipesim
