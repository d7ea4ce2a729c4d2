// A schedule's description, from a file of its own (docs/reference/descriptions.md).
#pragma once

#include <memory>
#include <string>

#include "sim/core/error.h"
#include "sim/planning/description.h"
#include "sim/read/yaml.h"

namespace pipesim {

// InputError where the file cannot be read, at `asked`, or at the place in it that is wrong.
std::shared_ptr<const DescribedSchedule> read_description_file(const std::string& path,
                                                               const Location& asked);

// The same of a text.
std::shared_ptr<const DescribedSchedule> read_description(const YamlSource& source);

}  // namespace pipesim
