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

#include <span>

#include "models/layout.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

// How many layers each device of a placement has room for. Layers count by kind, not by number
// (StageLayers::first), and `chunks` are those of the device in order.
class DeviceRoom {
 public:
  DeviceRoom() = default;
  DeviceRoom(const DeviceRoom&) = delete;
  DeviceRoom& operator=(const DeviceRoom&) = delete;
  virtual ~DeviceRoom() = default;

  // Where some layers fit, fewer must too.
  virtual bool fits(int device, std::span<const StageLayers> chunks) = 0;
  // No less than the layers that the device can take on its chunks `open` besides `chunks`.
  virtual int most_more(int device, std::span<const StageLayers> chunks,
                        std::span<const int> open) = 0;
};

// InfeasibleError when no split fits. Without `room` all do.
Layout balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
               DeviceRoom* room = nullptr);

}  // namespace pipesim
