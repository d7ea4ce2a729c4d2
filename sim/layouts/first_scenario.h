// A first scenario of one's own: a model on a cluster, with sizes by a simple rule and a line about
// every section. `pipesim plan` searches for good sizes; these only run, and fit where that is
// easy.
#pragma once

#include <optional>
#include <string>

#include "models/hardware.h"
#include "models/transformer.h"
#include "sim/core/error.h"

namespace pipesim {

struct FirstSizes {
  int tensor = 1;
  int expert = 1;  // of a model with experts, each of them whole
  int pipeline = 1;
  int data = 1;

  [[nodiscard]] int gpus() const { return tensor * pipeline * data; }
};

// tensor: as many GPUs of a node, 8 at most, as divide the model's heads. pipeline: the smallest of
// 4, 8, 16 ... (2, 4, 8 ... where `gpus` does not divide by 4) with which weights, gradients and
// optimizer states fill at most half a GPU. data: the rest of `gpus`; without a number the fewest
// GPUs for which there is such a pipeline. Where there is none, the longest one whose stages have
// two layers each. InputError at `asked` for an odd number of GPUs, with the nearest even one.
FirstSizes first_sizes(const Transformer& model, const Hardware& hardware, std::optional<int> gpus,
                       const Location& asked);

// YAML of the scenario. Model and cluster are names of the catalogue.
std::string first_scenario(const Transformer& model, const Hardware& hardware,
                           const FirstSizes& sizes);

}  // namespace pipesim
