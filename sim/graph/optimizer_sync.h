// The passes of one iteration that the next one waits for.
#pragma once

namespace pipesim {

// When the next iteration may start (docs/reference/model.md).
enum class OptimizerSync {
  kNone,            // as kAllReduce, at no cost: for costs without an optimizer
  kAllReduce,       // after all devices have ended their passes and optimizer steps
  kPostValidation,  // each device after its own passes and optimizer step (Zero Bubble, section 4),
                    // and those of its position in the other pipelines, with which it reduces
                    // gradients
  kAsynchronous,    // at once: a device steps while later microbatches are in flight, and never
                    // drains (PipeDream); all iterations are one program (coupling.h)
};

// True if devices wait for each other between iterations, and so for the norm of all gradients.
constexpr bool joins_devices(OptimizerSync sync) {
  return sync == OptimizerSync::kNone || sync == OptimizerSync::kAllReduce;
}

}  // namespace pipesim
