// Copies of activations between a device and its host's memory, beside the passes of a program.
//
// A device copies over a host link, which the devices of one switch share. A link carries one copy
// at a time in each direction, in this order. Devices of a pair never copy in the same direction at
// once (PipeOffload, arXiv 2503.01328, section 4).
#pragma once

#include <cstdint>
#include <vector>

namespace pipesim {

// One activation on its way out, or back.
struct Copy {
  std::uint32_t device = 0;
  std::uint32_t unit = 0;   // see Shape::units
  std::uint16_t chunk = 0;  // of the device
  // The other direction of its link is planned to be silent meanwhile.
  bool alone = false;
  // A copy back starts once the pass at this position of its device has ended; with kAnyTime, as
  // soon as its copy out has.
  std::uint32_t after = 0;

  static constexpr std::uint32_t kAnyTime = 0xffffffff;
};

// The pass at this position of a device starts when a copy out of that device has ended: it needs
// the room. `out` numbers the copies out of the device's link.
struct Gate {
  std::uint32_t position = 0;
  std::uint32_t out = 0;
};

struct LinkCopies {
  std::vector<Copy> out;  // each starts when the F has ended that made the activation
  std::vector<Copy> in;   // the first pass that needs it waits for its end
};

// Every activation that goes out comes back. Activations that are not named stay on their device.
struct CopyPlan {
  int devices_per_link = 1;  // device d copies over link d / devices_per_link
  std::vector<LinkCopies> links;
  std::vector<std::vector<Gate>> gates;  // by device, by position

  [[nodiscard]] size_t link_of(std::uint32_t device) const {
    return device / static_cast<std::uint32_t>(devices_per_link);
  }
};

}  // namespace pipesim
