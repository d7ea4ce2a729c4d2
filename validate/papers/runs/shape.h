// Which transformer a row's words name, and how its layers stand on the stages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/papers/runs/rules.h"

namespace pipesim::runs {

// A model as a scenario's YAML, or what is missing of it.
struct Named {
  std::string yaml = {};
  int layers = 0;
  double output = 0;  // parameters of the output matrix, in those of a layer
  bool moe = false;
  std::string missing = {};
};

// A row's sizes (layers, hidden, heads, ...) go before those written in its model's name, as in
// "GPT 175B (96 layers, hidden 12288)", and these before the catalogue's of that name. Layers that
// no one states follow from the parameters that the name says ("GPT 200B"), as the multiple of
// `stages` that is nearest.
Named model_of(const Row& row, const Rules& rules, const Settings& settings, int tensor,
               int stages);

// `parallel` keys that place the layers on the stages (rules.yaml, "layers").
std::string placing(const Row& row, const Settings& settings, const Named& model, int stages);

// Letters and digits in small letters.
std::string plain(const std::string& text);

}  // namespace pipesim::runs
