// Iteration time of a training run as papers report it: stages timed by models/, the schedule
// planned and replayed, the step that closes an iteration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "models/layer_cost.h"
#include "models/layout.h"
#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/graph/build.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// Measured corrections of a framework to models/: factors on the seconds of each pass, on those of
// the output layer besides, and seconds that every message takes beyond its bytes' way (calls of
// the framework and of NCCL).
struct Profiled {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  Seconds message;
  double output_forward = 1;          // with S of a shared vocabulary
  double output_backward = 1;         // with T
  Seconds output_forward_token = {};  // of the output or S, of T: a token, before the pass's factor
  Seconds output_backward_token = {};
  Seconds input_forward = {};  // IF and IB of a shared vocabulary, beyond the model
  Seconds input_backward = {};
};

// Measured seconds of a stage's passes on one microbatch, B and W in one.
struct MeasuredStage {
  Seconds forward;
  Seconds backward;
};

struct TimedRun {
  Transformer model;
  CostSetting setting;
  Hardware hardware;
  EvenSplit split;
  std::vector<int> layers;              // of every stage in forward order, instead of the split
  std::vector<MeasuredStage> measured;  // by virtual stage, instead of the model's passes
  std::string schedule = "1f1b";
  // Shared by all devices, its passes and collectives are the model's.
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  int devices = 1;
  int chunks = 1;
  int microbatches = 1;
  OptimizerSync sync = OptimizerSync::kAllReduce;
  // Messages hold the devices, in the calls of the schedule's framework; never those of a runtime
  // that sends asynchronously.
  bool blocking = true;
  // The schedule is planned as if every stage took and kept what the median device does: for
  // frameworks that plan with one F, B and W.
  bool plan_as_if_equal = false;
  Profiled profiled;
  // On what the GPU computes: passes and the optimizer's step; messages and reductions stay.
  double compute_factor = 1;
};

// Seconds of passes and messages, mean over the virtual stages; messages over those that leave
// their device.
StageCost mean_stage(const TimedRun& run);

// The period, in steady state. Throws InfeasibleError when the schedule or the layers do not take
// the shape.
Seconds iteration_seconds(const TimedRun& run);

}  // namespace pipesim
