// A run's measured seconds of passes, and the same on other stages.
//
// A run of S stages gives seconds for any schedule whose number of stages divides S or is a
// multiple of it. Merged stages take their sum. A split stage is split evenly, with one exception.
// The first and the last keep their excess over the median of those between (the embedding, the
// output layer) in their first and last part.
//
// Every pass also waits for its launch, however small it is: the gap that the run left between
// passes where no message was waited for.
#pragma once

#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

struct StageOfRun {
  Seconds forward;
  Seconds backward_input;
  Seconds backward_weight;
  Seconds launch_forward;
  Seconds launch_backward;
  Seconds launch_weight;
};

struct MeasuredPasses {
  std::string file;
  std::vector<StageOfRun> stages = {};  // of the model, in forward order
  Seconds message;                      // end of a pass to the start of the one that waits for it
  Seconds opening;                      // what the first forwards of an iteration take more
  Seconds closing;                      // what the last backwards take more
};

// Measured passes on `count` stages; InfeasibleError where neither number divides the other.
std::vector<StageOfRun> on_stages(const MeasuredPasses& measured, int count);

// Seconds of the stage's passes, launches included.
void fill(const StageOfRun& measured, StageCost& stage);

// Seconds of a message between two stages, without the launch of the pass that waits for it, which
// its own seconds have.
Seconds message_between(const MeasuredPasses& measured, const StageOfRun& up,
                        const StageOfRun& down);

}  // namespace pipesim
