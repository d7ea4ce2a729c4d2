// Measured runs beside what was simulated of them: what bands are learned from.
//
// A CSV file with the columns
//   id,group,model,gpu,precision,kind,framework,year,gpus,network,published_seconds,
//   simulated_seconds
// as `pipesim validate runs` writes it (models/catalog/residuals.csv). The file
// anchored_residuals.csv is of the same runs; each but the first of its model, GPU, precision and
// software is anchored on that one.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

struct Residual {
  std::string id;
  std::string gpu;        // its name in the catalogue
  std::string precision;  // bf16, fp8, mxfp8, nvfp4
  std::string kind;       // dense or moe
  std::string framework;
  int year = 0;
  double log_ratio = 0;    // ln(published / simulated)
  std::string model = {};  // model_shape
  int gpus = 0;
  double network = 0;  // Gbit/s between nodes that a GPU has; 0: of one node
};

// Layers and hidden size, which tell models apart whatever their names: "80x8192".
std::string model_shape(int num_layers, int hidden_size);

// InputError, with file and line, for a column that is missing and a number that is none. It is
// located at `asked` where the file cannot be read. O(rows).
std::vector<Residual> read_residuals(const std::string& path, const Location& asked);
// Reads a text; messages call it `name`.
std::vector<Residual> parse_residuals(const std::string& text, const std::string& name);

}  // namespace pipesim
