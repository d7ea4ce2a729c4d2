// The split of layers over the stages of a placement with the least maximal stage time, of all that
// fit.
//
// Ties go to the least maximal time of a device, then the least sum of squared times of devices,
// then of the stages of each. The embedding is on the first stage and the output on the last, as in
// Megatron-LM. MTP modules are together, with the output or on the stage before it; any other stage
// may be empty.
//
// Exact. A bound on stage seconds gives every device a largest number of layers, and these add up.
// Bounds are tried from the least that anything could reach; the first under which all layers fit
// is taken. A device's number is found by branch and bound over its chunks. With leading dense
// layers before experts, the stage where one kind ends is tried at every place.
#pragma once

#include "models/device_room.h"
#include "models/layout.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

// InfeasibleError when no split fits. Without `room` all do.
Layout balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
               DeviceRoom* room = nullptr);

}  // namespace pipesim
