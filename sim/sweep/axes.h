// The section `sweep` of a file: which keys take which values together (docs/how-to/sweep.md).
#pragma once

#include <string>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

// A value as YAML of one line, and its place in the file or override that has its key. For a range
// or a draw it is the place of the whole.
struct SweptValue {
  std::string text;
  int line = 0;
  int column = 0;
};

struct SweptKey {
  std::string path;  // dotted, as on the command line
  Location where;
  std::vector<SweptValue> values;
};

// Keys that advance together: their lists have one length.
struct Axis {
  std::vector<SweptKey> keys;
  [[nodiscard]] size_t length() const { return keys.front().values.size(); }
};

// In this order: an axis for every key of `grid`, one for `zip`, one for `draw`. InputError for an
// axis without values, for keys given twice or within each other, and for `schedule`, whose list is
// swept anyway.
std::vector<Axis> read_axes(const YamlValue& sweep);

}  // namespace pipesim
