// Peaks of memory that Megatron-LM's functional tests record, against the simulator's.
//
// A row has the arguments of a test, which sim/interop/frameworks reads as `pipesim import` would,
// and by platform PyTorch's peak of allocated bytes on the last rank of the world: no CUDA context,
// no NCCL. Settings that the file leaves out follow from one rule for all rows:
//
//   vocabulary  without vocab_size that of the tests' tokenizer: GPT-2's 50,257, and 256,000 in
//               runs of the project megatron-core-release-runs (nemotron_2_256k.model)
//   GPUs        the fewest nodes of 8 that hold the arguments' ranks; where the optimizer is
//               sharded and allocated_bytes (held between iterations) is recorded, the power of two
//               times that whose state is nearest to it: a measurement chooses here
//   batch       without global_batch_size that of the first of step_batch_size_schedule
//
// Models that a scenario cannot say (encoders, images, state-space layers) and runs that are no
// training (reinforcement learning) are named with the setting that says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace pipesim {

struct GoldenPeak {
  std::string id;
  std::string family;    // the first word of the id
  std::string platform;  // "dev_dgx_h100"
  int gpus = 0;          // as taken
  Bytes measured;
  std::optional<Bytes> simulated = {};  // without CUDA's context
  std::string reason = {};              // why nothing is simulated
  std::string scenario = {};            // YAML; empty where there is none

  // NaN where nothing is simulated.
  [[nodiscard]] double error() const;
};

// A file of such rows, and no other, has `rows`.
bool has_rows(const std::string& path, const Location& asked);

// Reads a file with `rows` of {id, arguments, measured}, in its order; a platform without a peak is
// left out. In parallel. InputError where the file is not so.
std::vector<GoldenPeak> golden_peaks(const std::string& path, const Location& asked);

// Smaller peaks are mostly workspaces, and are summed up apart.
inline constexpr Bytes kGoldenFrom = 4 * kGiB;

// For people, at most 100 columns: errors by family and in all, then what is not modelled.
std::string golden_text(const std::vector<GoldenPeak>& peaks);
// Every peak on its own line.
std::string golden_rows(const std::vector<GoldenPeak>& peaks);
// A list of {id, family, platform, gpus, measured_bytes, simulated_bytes, relative_error, status,
// reason}; status is `simulated` or `not modelled`.
std::string golden_json(const std::vector<GoldenPeak>& peaks);

}  // namespace pipesim
