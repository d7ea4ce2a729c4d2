// Numbers that a caller gives, held to their ranges.
#pragma once

#include <fmt/format.h>

#include "app/ranges.h"
#include "sim/core/error.h"

namespace pipesim {

// The value; InputError at the argument's name where it is out of range.
template <class Number>
Number within(const char* name, Number value, Range<Number> range) {
  if (value >= range.least && value <= range.most) return value;
  throw InputError({name, 0, 0, ""},
                   fmt::format("expected {} to {}, not {}", range.least, range.most, value));
}

}  // namespace pipesim
