// Rows of a small model, for replays on a card and on the device that only keeps time.
#pragma once

#include <string>

#include "sim/case/simulate.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"
#include "validate/calibration/replay_gpu.h"
#include "validate/calibration/replay_layer.h"
#include "validate/calibration/replay_report.h"

namespace pipesim::calibration {

struct SmallModel {
  Scenario scenario;
  Result simulation;
  std::vector<StageContent> stages;

  explicit SmallModel(const std::string& schedule)
      : scenario(read_scenario(YamlSource(
            "test", "schedule: " + schedule +
                        "\nmodel: {num_layers: 8, hidden_size: 2048, num_attention_heads: 16,\n"
                        "        vocab_size: 32000, max_position_embeddings: 2048}\n"
                        "cluster: dgx-h100\n"
                        "parallel: {pipeline_model_parallel_size: 4}\n"
                        "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 2048}\n"))),
        simulation(simulate(testing::case_of(scenario, choice()))),
        stages(stage_contents(scenario, choice())) {}

  [[nodiscard]] const ScheduleChoice& choice() const { return scenario.schedules.front(); }
  [[nodiscard]] LayerSlice slice() const { return slice_of(scenario, choice()); }
  [[nodiscard]] Row row(int device) const { return row_of(simulation, stages, device); }
};

}  // namespace pipesim::calibration
