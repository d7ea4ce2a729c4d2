// Letters of layers, as lists, texts and periods of a config.json say them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/read/yaml.h"

namespace pipesim {

// The facts of a file that a form may ask for.
struct HfFacts {
  int layers = 0;  // 0: the file has no number of them
  std::function<std::optional<YamlValue>(const std::string&)> given;  // a key's value
  std::function<std::optional<long>(const YamlValue&)> number;        // a formula's
};

// Letters, and the value of the file that they were read from.
struct LayerLetters {
  std::string letters;
  std::optional<YamlValue> from = {};
};

// A letter a layer, by one of the forms at the head of models/catalog/architectures.yaml. A list of
// forms stands for the first that the file has. Empty when it has none. InputError at an entry
// without a letter, and where a list does not cover every layer.
LayerLetters letters_of(const YamlValue& form, const HfFacts& facts);

// The shortest letters that, repeated, are these.
std::string shortest_period(const std::string& letters);

// Which layers have experts: from the first on, every so many, but for the last.
struct ExpertLayers {
  int first = 0;
  int every = 1;
  int last = 0;  // layers behind them
};
// By letters `E` and `-`; nothing when there is no E. InputError at their value in the file, or at
// `file`, when they are of no such step.
std::optional<ExpertLayers> expert_layers(const LayerLetters& read, const YamlValue& file);

}  // namespace pipesim
