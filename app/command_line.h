// The command line as a text in which mistakes are located.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/read/yaml.h"

namespace pipesim {

// A word as it was meant, and where it was typed.
struct MeantWord {
  std::string text;
  size_t typed = 0;  // the argument's number
  int skipped = 0;   // letters in front of it there, as the dashes of `--tp 4`
  int longer = 0;    // letters that it has more in front of its value than were typed
};

class CommandLine {
 public:
  CommandLine(int argc, const char* const* argv);
  // The line as it was meant, whose words are located where they were typed.
  CommandLine(const CommandLine& typed, const std::vector<MeantWord>& meant);

  [[nodiscard]] const std::vector<std::string>& arguments() const { return arguments_; }
  // Where argument `index` (0: the first after the program's name) stands.
  [[nodiscard]] Location where(size_t index) const;
  // Where `argument` stands, or the end of the line when it does not.
  [[nodiscard]] Location where(const std::string& argument) const;
  // Where a value of an option stands, alone or in a list with commas: the last of that text.
  [[nodiscard]] Location where(const std::string& option, const std::string& value) const;
  // Where `value` stands as an option's, or anywhere when it does not.
  [[nodiscard]] Location of_option(const std::string& value) const;
  [[nodiscard]] std::vector<Override> overrides(const std::vector<std::string>& texts) const;

 private:
  std::vector<std::string> arguments_;
  std::vector<int> columns_;  // of each first letter, from 1, and behind the last
  std::vector<int> longer_;   // of each: MeantWord::longer
  SharedLine text_;
};

// Where each schedule's result goes: with several, their names come between the stem and the
// extension of `path`, numbered where they repeat, as in out.zb-h1.json and out.zb-h1-2.json. One
// result takes the path as it is. A name that is a path counts by its stem.
std::vector<std::string> one_path_each(const std::string& path,
                                       const std::vector<std::string>& schedules);

// True if text on standard output is coloured: `always`, `never`, or `auto`. `auto` colours a
// terminal that can, unless the environment asks for none (NO_COLOR, no-color.org).
bool coloured(const std::string& when);

// True if a stream of the process (1, 2) is a terminal that colours and rewrites (TERM is not
// dumb).
bool is_terminal(int stream);

// Columns of the terminal that the stream is; nothing where it is none, or does not say.
std::optional<size_t> terminal_width(int stream);

}  // namespace pipesim
