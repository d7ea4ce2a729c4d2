// The scenario's `vocabulary` section.
#pragma once

#include "sim/pipeline/vocabulary.h"
#include "sim/scenario/yaml.h"

namespace pipesim {

// A placement, or a map {placement: ...}. InputError otherwise.
VocabularyPlacement read_vocabulary(const YamlValue& value);

}  // namespace pipesim
