// The part of Megatron-LM's settings that is the model.
#pragma once

#include <string>
#include <vector>

#include "sim/interop/frameworks/draft.h"

namespace pipesim {

// What several parts of a scenario follow from.
struct MegatronSizes {
  long tensor = 1;
  long pipeline = 1;
  long context = 1;
  long chunks = 1;
  long layers = 0;
  bool experts = false;
  bool zero_bubble = false;  // of the zero-bubble fork, whose sends are asynchronous
  std::string layout = {};   // pipeline_model_parallel_layout
};

// Nothing is put where the settings name no layers: a model's scenario then needs another source.
void put_model(Settings& settings, MegatronSizes& sizes, Draft& draft);

// A list as Megatron-LM's arguments write it: an int N (1: every one, N: every N-th), or a Python
// expression of lists such as ([0]*3+[1]*58). `length` numbers; empty where it is neither.
std::vector<int> frequencies_of(const std::string& text, long length);

}  // namespace pipesim
