// Sizes that several parts of a Megatron-LM scenario follow from.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

struct MegatronSizes {
  long tensor = 1;
  long pipeline = 1;
  long context = 1;
  long chunks = 1;
  long layers = 0;
  long encoder_layers = 0;       // of these, where the others decode
  std::string mixer = "mamba2";  // linear_attention.kind of a hybrid pattern's layers M
  long parts = 1;                // layers here of one that the settings count
  bool experts = false;
  bool learned_positions = false;          // whose number is a sequence's length without another
  bool zero_bubble = false;                // of the zero-bubble fork, whose sends are asynchronous
  std::string layout = {};                 // pipeline_model_parallel_layout
  std::vector<long> layers_of_stage = {};  // in a hybrid pattern, where it ends stages
  std::vector<long> idle_layers = {};  // their numbers: they do nothing (MindSpeed's noop_layers)
};

}  // namespace pipesim
