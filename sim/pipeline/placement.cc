#include "sim/pipeline/placement.h"

#include <algorithm>

#include "sim/core/error.h"

namespace pipesim {
namespace {

// Down the devices and back up.
std::vector<int> wave_of(int devices, int chunks) {
  std::vector<int> device_of;
  for (int vs = 0; vs < devices * chunks; ++vs) {
    const int down = vs % devices;
    device_of.push_back(vs / devices % 2 == 0 ? down : devices - 1 - down);
  }
  return device_of;
}

}  // namespace

Placement::Placement(std::span<const int> device_of, int devices, int directions)
    : devices_(devices),
      directions_(directions),
      model_stages_(static_cast<int>(device_of.size()) / directions),
      device_of_(device_of.begin(), device_of.end()),
      chunks_of_(devices, 0) {
  for (const int device : device_of) {
    if (device < 0 || device >= devices) throw LogicError("placement: no such device");
    chunk_of_.push_back(chunks_of_[device]++);
  }
  if (std::ranges::min(chunks_of_) == 0) throw LogicError("placement: a device holds no stage");
  chunks_ = std::ranges::max(chunks_of_);
  stage_of_ = Grid<int>(devices, chunks_, -1);
  for (size_t vs = 0; vs < device_of.size(); ++vs) {
    stage_of_(device_of[vs], chunk_of_[vs]) = static_cast<int>(vs);
  }
  for (int vs = 0; vs < virtual_stages(); ++vs) {
    upstream_.push_back(model_stage(vs) == 0 ? -1 : vs - 1);
    downstream_.push_back(model_stage(vs) + 1 == model_stages_ ? -1 : vs + 1);
  }
}

Placement Placement::looped(int devices, int chunks) {
  std::vector<int> device_of;
  for (int vs = 0; vs < devices * chunks; ++vs) device_of.push_back(vs % devices);
  return {device_of, devices, 1};
}

Placement Placement::wave(int devices, int chunks) {
  return {wave_of(devices, chunks), devices, 1};
}

Placement Placement::vee(int devices) { return wave(devices, 2); }

Placement Placement::bidirectional(int devices) { return {wave_of(devices, 2), devices, 2}; }

Placement Placement::custom(std::span<const int> device_of, int copies) {
  if (device_of.empty()) throw LogicError("placement: no stages");
  if (copies < 1 || device_of.size() % static_cast<size_t>(copies) != 0) {
    throw LogicError("placement: the copies of the model have unequal numbers of stages");
  }
  return {device_of, *std::ranges::max_element(device_of) + 1, copies};
}

}  // namespace pipesim
