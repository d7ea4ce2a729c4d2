// Layouts that were published for tuned runs of a model: recipes.csv of the catalogue.
#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "models/recompute.h"
#include "models/transformer.h"

namespace pipesim {

struct Recipe {
  std::string id;         // of validate/papers/runs/runs.yaml
  std::string model;      // as shape_of has it
  std::string gpu;        // a name of the catalogue
  std::string precision;  // bf16, fp8, mxfp8 or nvfp4
  int gpus = 1;
  int seq_length = 1;
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int pipeline = 1;
  int chunks = 1;
  int micro_batch = 1;
  RecomputeGranularity recompute = {};
};

// Layers, hidden size, width of the MLP and number of experts, if any: "80x8192x28672",
// "32x4096x14336x8".
std::string shape_of(const Transformer& model);

// All of the catalogue; none where it has no such file. InputError at a cell that cannot be read.
std::vector<Recipe> catalogue_recipes();

// The recipes of a model and a GPU, the nearest first. Equal precision comes first, then the ratio
// of sequence lengths counts, then that of GPUs. Equals keep the order of the file.
std::vector<Recipe> recipes_for(const Transformer& model, const Gpu& gpu,
                                const std::string& precision, int seq_length, int gpus);

}  // namespace pipesim
