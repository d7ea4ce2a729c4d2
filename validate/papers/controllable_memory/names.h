// Names shared by Figure 7 and Tables 6 and 7: the paper's schedules, models, the split.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "models/layout.h"
#include "models/transformer.h"
#include "sim/read/model.h"
#include "sim/read/yaml.h"

namespace pipesim::controllable_memory {

struct Name {
  const char* paper;
  const char* schedule;
  bool recompute = false;
};
inline constexpr std::array<Name, 8> kNames{{{"1F1B", "1f1b"},
                                             {"1F1B-R", "1f1b", true},
                                             {"1F1B-I", "interleaved-1f1b"},
                                             {"ZB-1P", "zb-1p"},
                                             {"ZB-2P", "zb-2p"},
                                             {"V-Min", "v-min"},
                                             {"V-Half", "v-half"},
                                             {"V-ZB", "v-zb"}}};

inline constexpr double kPeakFlops = 312e12;

// Embedding and output stand for a layer each, so that chunks of the V-shape hold one or as many.
inline constexpr EvenSplit kSplit{.count_embedding = true, .count_loss = true};

// "9.6B" is cm-9.6b; InputError when it is not known.
inline Transformer model_of(const YamlValue& label) {
  std::string name = "cm-" + label.text();
  if (name.back() == 'B') name.back() = 'b';
  Transformer model = find_model(name, label.where());
  model.tied_embeddings = false;  // as in the launch script of Zero Bubble's authors
  return model;
}

inline int chunks_of(const Name& name, const Transformer& model, int devices) {
  const std::string schedule = name.schedule;
  if (schedule.starts_with("v-")) return 2;
  if (schedule == "interleaved-1f1b") return std::max(2, (model.num_layers + 2) / devices);
  return 1;
}

}  // namespace pipesim::controllable_memory
