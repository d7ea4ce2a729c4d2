#include "models/stage_passes.h"

namespace pipesim {
namespace {

// How often the stage runs a layer of this kind.
int times_run(const Transformer& model, const StageLayers& stage, LayerKind kind) {
  const int more = kind == LayerKind::kOutput ? stage.mtp : 0;
  return count(model, stage, kind) + more;
}

}  // namespace

StagePasses stage_passes(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs) {
  StagePasses sum;
  for (size_t i = 0; i < kSizeOf<LayerKind>; ++i) {
    const auto kind = static_cast<LayerKind>(i);
    const int times = times_run(model, stage, kind);
    if (times == 0) continue;
    const LayerCost& one = costs[kind];
    sum.forward += 1.0 * times * one.forward;
    sum.backward_input += 1.0 * times * one.backward_input;
    sum.backward_weight += 1.0 * times * one.backward_weight;
    if (is_layer(kind)) sum.recompute += 1.0 * times * one.forward;
  }
  return sum;
}

}  // namespace pipesim
