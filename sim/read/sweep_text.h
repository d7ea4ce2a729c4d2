// The text of a sweep's file: the place of its section `sweep`. A reader of results gets the
// scenario as the person wrote it, which every point changes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

std::vector<std::string> lines_of(const std::string& text);

// The lines of the section `sweep`. Its key is at the start of a line of its own. The section ends
// before the next key in the first column and its comments.
std::vector<bool> lines_of_sweep(const std::vector<std::string>& lines);

struct SweepText {
  std::string scenario;  // the file without its section `sweep`, comments kept
  // The scenario's schedules: name, and the entry as one would write it on a command line.
  std::vector<std::pair<std::string, std::string>> schedules;
  std::string cost;  // given, roofline or measured
};

// InputError when `text` is no YAML map. Nothing else is checked: the sweep has done that.
SweepText read_sweep_text(const std::string& name, const std::string& text);

// The document in YAML with the values of its overrides in place, and so without its comments.
std::string text_of(const YamlSource& source);

}  // namespace pipesim
