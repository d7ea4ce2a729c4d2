// Commands and their options, as a user writes them; hides CLI11, which takes seconds to compile.
//
// A value given on the command line goes to the variable that the option was added with, which must
// outlive the parser. Types of values: those at the end of parser.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pipesim {

// An error in a command line.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Refines one option; each function returns the option for the next.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  friend class Parser;

  Option required();
  Option one_of(const std::vector<std::string>& values);
  Option range(int least, int most);
  Option range(double least, double most);
  template <class Range>
  Option range(const Range& both) {
    return range(both.least, both.most);
  }
  Option positive();
  // `fault` returns what is wrong with a value, or an empty text.
  Option check(std::function<std::string(const std::string&)> fault);
  Option excludes(const Option& other);
  Option one_each();           // of a list: one value each time the option is given
  Option with_commas();        // of a list: values with commas between, in one argument
  Option with_binary_units();  // 4k is 4096, 1m 1048576
  Option with_default();       // the help states the variable's value

 private:
  CLI::Option* option_;
};

// An option in words, for pages about the program.
struct OptionText {
  std::vector<std::string> names;  // with their dashes; of one that stands by its position its name
  std::string help;
  std::vector<std::string> choices;  // of one_of
  bool positional = false;
  bool takes_value = false;
};

class Parser {
 public:
  Parser(const std::string& name, const std::string& help);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser();

  // `names`: "file" stands by its position, "-o,--output" by its names.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);

  // -j,--threads, which threads() returns.
  void add_threads();
  // An option or flag that an earlier release had: read still, and in no help. Where it is given,
  // hints() has `hint`, a sentence that says what to write now.
  void retire(Option option, const std::string& hint);

  // Further arguments, whatever they are, are read over.
  void take_any();

  // The last lines of --help, of commands that are added later too.
  void close_with(const std::string& text);
  void add_version(const std::string& version);

  // Commands that are added from here on stand under `title` in --help.
  void begin_group(const std::string& title);
  // `examples`: two command lines that --help ends with.
  Parser& add_command(const std::string& name, const std::string& help,
                      const std::string& examples = {});
  void require_command();

  // False when the line asked for help or the version, which are printed: nothing is left to do.
  // Throws OptionError.
  [[nodiscard]] bool parse(int argc, const char* const* argv);
  [[nodiscard]] bool chosen() const;  // of a command, after `parse`
  // The chosen command, or the parser itself.
  [[nodiscard]] const Parser& chosen_command() const;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string help() const;       // in a line
  [[nodiscard]] std::string group() const;      // the title that the command stands under
  [[nodiscard]] std::string help_page() const;  // as --help prints it
  [[nodiscard]] std::optional<int> threads() const { return threads_; }
  [[nodiscard]] const std::vector<std::string>& hints() const { return hints_; }
  [[nodiscard]] const std::string& examples() const { return examples_; }
  [[nodiscard]] std::vector<OptionText> options() const;
  [[nodiscard]] std::vector<std::string> option_names() const;  // with their dashes
  [[nodiscard]] const std::vector<std::unique_ptr<Parser>>& commands() const { return commands_; }

 private:
  explicit Parser(CLI::App& command);

  std::unique_ptr<CLI::App> root_;  // commands belong to the root's
  CLI::App* app_;
  std::string examples_;
  std::string next_group_;
  std::optional<int> threads_;
  std::vector<std::string> hints_;
  std::vector<std::unique_ptr<Parser>> commands_;
};

}  // namespace pipesim
