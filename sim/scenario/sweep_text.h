// What a reader of a sweep's results needs of its file: the scenario that a point is a change of,
// as the person wrote it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/yaml.h"

namespace pipesim {

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
