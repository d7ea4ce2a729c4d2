#include "sim/scenario/read_vocabulary.h"

#include <algorithm>
#include <string>
#include <vector>

namespace pipesim {
namespace {

VocabularyPlacement read_placement(const YamlValue& value) {
  static const std::vector<std::string> kNames(kVocabularyPlacements.begin(),
                                               kVocabularyPlacements.end());
  const auto found = std::ranges::find(kNames, value.choice(kNames));
  return static_cast<VocabularyPlacement>(found - kNames.begin());
}

}  // namespace

VocabularyPlacement read_vocabulary(const YamlValue& value) {
  if (!value.is_map()) return read_placement(value);
  YamlMap map(value);
  const auto placement = read_placement(
      map.require("placement", "first_last, redistributed, interlaced, vocab-1 or vocab-2"));
  map.finish();
  return placement;
}

}  // namespace pipesim
