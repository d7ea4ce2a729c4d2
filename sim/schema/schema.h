// JSON Schemas of the files people write: scenarios, sweeps, descriptions of schedules, catalogues.
//
// Made from the readers themselves: samples are read while an observer notes every key that is
// asked for and every value's kind (sim/read/observer.h). Samples are the shipped files, every
// option of every schedule, and the files of samples/ with all other keys. A key whose value no
// sample gives takes any value in the schema; a test keeps that from happening.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// Their names: "scenario", "sweep", "description", "models", "gpus", "clusters".
const std::vector<std::string>& schema_names();

// Draft 7, indented by 2. `asked` locates the request, for when a sample cannot be read. Requires
// one of schema_names().
std::string schema_of(const std::string& name, const Location& asked);

// Keys of the schema, as paths with * for a free name and [] for an item, whose values no sample
// gives.
std::vector<std::string> unknown_values(const std::string& name, const Location& asked);

}  // namespace pipesim
