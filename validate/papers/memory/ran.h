// Measured runs by memory. A run that ran fits, whatever the simulator says of it; its printed
// memory is compared in the terms of the counter that printed it.
//
//   max_memory_allocated_bytes, max_memory_usage_log, memory_GB, max_memory_GB
//         PyTorch's peak of allocated bytes: the simulated peak without CUDA's context
//   mem   what nvidia-smi shows: the peak with the context, and the margin of the framework's
//         generation, which the allocator and NCCL hold
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/memory_fit.h"
#include "sim/core/error.h"
#include "sim/core/units.h"

namespace pipesim {

struct RunMemory {
  std::string table;
  std::string id;
  MemoryFit fits = MemoryFit::kNo;
  std::optional<Bytes> printed = {};    // by the run
  std::optional<Bytes> simulated = {};  // in the same terms
};

// The runs of a file (validate/papers/runs/row.h) that ran and are simulated, in its order, by the
// rules of the file `rules`. In parallel.
std::vector<RunMemory> memory_of_runs(const std::string& file, const std::string& rules,
                                      const Location& asked);

// For people, at most 100 columns: a line for each table, then one of all.
std::string run_memory_text(const std::vector<RunMemory>& runs);
// Every run on its own line.
std::string run_memory_rows(const std::vector<RunMemory>& runs);
// A list of {table, id, fits, printed_bytes, simulated_bytes}.
std::string run_memory_json(const std::vector<RunMemory>& runs);

}  // namespace pipesim
