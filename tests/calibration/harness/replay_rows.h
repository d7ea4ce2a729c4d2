// Rows of a small model, for replays on a card and on the device that only keeps time.
#pragma once

#include <string>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "validate/calibration/replay_gpu.h"
#include "validate/calibration/replay_layer.h"
#include "validate/calibration/replay_report.h"

namespace pipesim::calibration {

struct SmallModel {
  Case made;
  Result simulation;
  std::vector<StageContent> stages;

  explicit SmallModel(const std::string& schedule)
      : made(prepare_first(read_scenario(YamlSource(
            "test", "schedule: " + schedule +
                        "\nmodel: {num_layers: 8, hidden_size: 2048, num_attention_heads: 16,\n"
                        "        vocab_size: 32000, max_position_embeddings: 2048}\n"
                        "cluster: dgx-h100\n"
                        "parallel: {pipeline_model_parallel_size: 4}\n"
                        "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 2048}\n")))),
        simulation(simulate(made)),
        stages(stage_contents(made)) {}

  [[nodiscard]] LayerSlice slice() const { return slice_of(made); }
  [[nodiscard]] Row row(int device) const { return row_of(simulation, stages, device); }
};

}  // namespace pipesim::calibration
