// Fuzz targets: readers of files by people and other programs, each by a name.
//
// A target is given any text and reads it. It may throw InputError, located at a line and column of
// a file or at the file as a whole, and InfeasibleError. Any other exception, a crash or a hang is
// a finding.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim::fuzz {

enum class Form : char {
  kText,
  kYaml,  // mutated as a tree of keys and values too (yaml_mutator.h)
};

struct Target {
  const char* name;
  Form form;
  void (*read)(const std::string& text);
};

// Adds a target before main.
struct Register {
  explicit Register(const Target& target);
};
const std::vector<Target>& targets();

// Where a text is asked for that stands in a file of its own.
inline const Location kAsked{"fuzz", 1, 1, ""};

// The path of a file with this text, for readers that take a path, in a folder of this process that
// goes with it. The same name is the same file.
std::string file_with(const std::string& name, const std::string& text);

// Ends the process where what must hold does not.
void must(bool holds);

}  // namespace pipesim::fuzz
