// Passes that compute a small model's stages for real (stage_math.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/case/case.h"
#include "sim/runtime/device.h"
#include "sim/runtime/stage_math.h"

namespace pipesim::runtime {

// The case's model, as its passes compute it. InfeasibleError, with the reason, for a case that
// they cannot compute. These are models other than those of stage_math.h, layers divided over ranks
// or recomputed, dropout, divided vocabularies and sequences, copies to the host.
SmallModel small_model_of(const Case& made, const Program& program);

// `made` has to outlive it. Ready at once: everything has been computed once, unseen.
std::unique_ptr<Work> make_computed_work(const Case& made, const Program& program, int device);

// Bytes of a message.
std::size_t message_bytes_of(const SmallModel& model);

// Gradients that one process computes without a pipeline: of all weights in the model's order,
// after all microbatches, one after the other.
std::vector<float> gradients_of_one_process(const SmallModel& model, int microbatches);

// By how much gradients differ at most, relative to the largest.
double largest_difference(std::span<const float> a, std::span<const float> b);

}  // namespace pipesim::runtime
