// The layers of a scenario's model as the slices that kernels run.
#pragma once

#include "sim/case/case.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

// InfeasibleError, with the reason, where the scenario has no model or one whose layers the kernels
// do not run. These are mixtures of experts, latent attention, MTP modules, attention that is not
// fused and causal, a divided sequence, linear layers in fp8, and passes that recompute a part of a
// layer.
[[nodiscard]] LayerSlice slice_of(const Case& made);

}  // namespace pipesim::calibration
