// The files on which a scenario's numbers depend beside its text.
#pragma once

#include <string>
#include <string_view>

#include "sim/read/yaml.h"

namespace pipesim {

// True if the catalogue says what the value of such a key means: "model", "cluster.network".
bool is_of_catalogue(std::string_view key);

// Fingerprints, a line each, of the files that the text may name. The catalogue's follow
// where `catalogue` is true or a key needs them.
std::string surroundings_of(const YamlSource& source, bool catalogue = false);

}  // namespace pipesim
