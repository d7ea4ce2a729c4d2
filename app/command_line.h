// The command line as a text in which mistakes are located, and the files that commands write.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/yaml.h"

namespace pipesim {

class CommandLine {
 public:
  CommandLine(int argc, const char* const* argv);

  [[nodiscard]] const std::vector<std::string>& arguments() const { return arguments_; }
  // Where argument `index` (0: the first after the program's name) stands.
  [[nodiscard]] Location where(size_t index) const;
  // Where `argument` stands, or the end of the line when it does not.
  [[nodiscard]] Location where(const std::string& argument) const;
  [[nodiscard]] std::vector<Override> overrides(const std::vector<std::string>& texts) const;

 private:
  std::vector<std::string> arguments_;
  std::vector<int> columns_;  // of the first letter, from 1
  std::string text_;
};

// What a command writes. An empty path is no output, "-" is standard output.
struct Output {
  std::string path;
  Location where;  // of the request
  std::function<void(std::ostream&)> write;
};

// Writes all or nothing: every file to a neighbour first, and only when all are complete they take
// their places. What is no plain file (a pipe, a device) is written in place. Throws InputError,
// located at the request, when that fails or two outputs go to standard output.
void write_outputs(const std::vector<Output>& outputs);

}  // namespace pipesim
