// The limits on a device's layers while they are balanced (models/balance.h).
#pragma once

#include <span>

#include "models/layout.h"

namespace pipesim {

// Room on the devices of a placement. Layers count by kind, not by number (StageLayers::first), and
// `chunks` are those of the device in order.
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

}  // namespace pipesim
