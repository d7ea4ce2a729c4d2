#include "models/module_offload.h"

#include <algorithm>

namespace pipesim {

Seconds copy_seconds(Bytes offloaded, const Hardware& hardware) {
  return offloaded / each_way(hardware.host);
}

void wait_for_copies(Seconds copy, const CostSetting& setting, StageCost& stage) {
  stage.forward = std::max(stage.forward, copy);
  const Seconds beside = setting.fused_backward ? stage.backward_weight : Seconds(0);
  stage.backward_input = std::max(stage.backward_input, copy - beside);
  if (stage.overlapped) stage.overlapped = std::max(*stage.overlapped, copy);
}

}  // namespace pipesim
