// The split of layers over the stages of a placement with the least maximal stage time, of all that
// fit.
//
// Of those that share it: the least maximal time of a device, then the least sum of squared times
// of devices, then of the stages of each. The embedding stands on the first stage and the output on
// the last, as Megatron-LM has it; MTP modules stand together, with the output or on the stage
// before it; any other stage may be empty.
//
// Exact. A bound on stage seconds leaves every device a largest number of layers, and these add up:
// bounds are tried from the least that anything could reach, and the first under which all layers
// find a place is taken. A device's number is found by branch and bound over its chunks. With
// leading dense layers before experts, the stage where one kind ends is tried at every place.
#pragma once

#include "models/device_room.h"
#include "models/layout.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

// InfeasibleError when no split fits. Without `room` all do.
Layout balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
               DeviceRoom* room = nullptr);

}  // namespace pipesim
