// The fastest layouts of a model on a number of GPUs (docs/how-to/plan.md).
#pragma once

#include <optional>
#include <pipesim/scenario.h>
#include <string>
#include <vector>

namespace pipesim::api {

struct PlanQuestion {
  // A name of the catalogue, or a path: of a config.json, or of a scenario (.yaml). That says what
  // is left out here, and its layout is the baseline.
  std::string model = {};
  std::vector<std::string> clusters =
      {};  // of the catalogue: "dgx-h100", or "dgx-h100:64" with its GPUs
  int gpus = 0;
  long global_batch_size = 0;  // samples of an iteration
  int seq_length = 0;          // tokens of a sample
  Changes changes = {};        // other keys of the scenario
  // Other options of `pipesim plan`, as they are written there: {"--tensor", "4,8", "--best", "3"}.
  // Options for files and text (--json, --export, --wide) are an Error.
  std::vector<std::string> options = {};
};

// Names and units are those of `layouts` in docs/reference/json.md.
struct Layout {
  std::string cluster;  // as it is told from the others: "dgx-h100:64 fp8"
  std::string schedule, label;
  int tensor_model_parallel_size = 1, context_parallel_size = 1, expert_model_parallel_size = 1,
      expert_tensor_parallel_size = 1, pipeline_model_parallel_size = 1,
      virtual_pipeline_model_parallel_size = 1, data_parallel_size = 1, micro_batch_size = 1;
  std::string recompute;
  std::string idea;                  // what it stands for among the layouts
  std::vector<std::string> runs_on;  // frameworks that run it as it stands
  double iteration_seconds = 0;
  std::optional<double> contended_iteration_seconds, contended_stddev_seconds;
  std::optional<double> iteration_low_seconds, iteration_high_seconds;  // the band
  double tokens_per_second_per_gpu = 0;
  double mfu = 0, mfu_causal = 0;  // shares of the GPU's peak
  double peak_memory_bytes = 0, peak_memory_low_bytes = 0, peak_memory_high_bytes = 0;
  std::string fits;  // "yes" or "tight"
  double headroom_bytes = 0;
  std::optional<double> host_memory_bytes;       // of a node
  double bubble = 0;                             // share of an iteration
  std::optional<double> days, gpu_hours, price;  // with --tokens and --price-per-gpu-hour
  std::string scenario;  // text that simulates it: scenario_from_text(layout.scenario)
};

struct Plan {
  std::vector<Layout> layouts;  // the fastest first, cluster by cluster
  std::string json, csv, text;  // what `pipesim plan` writes and prints
};

// Error of kInput, located in the command that the question makes; of kInfeasible where no layout
// fits, with what would make one fit. `watch.progress` counts points that are decided, anew
// for each cluster and precision.
Plan plan(const PlanQuestion& question, const Watch& watch = {});

}  // namespace pipesim::api
