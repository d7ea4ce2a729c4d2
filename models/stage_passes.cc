#include "models/stage_passes.h"

namespace pipesim {

StagePasses stage_passes(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs, const RecomputedLayers& recomputed) {
  const KindCounts again = count_recomputed(model, stage, recomputed);
  KindCounts counts = count_layers(model, stage);
  counts[LayerKind::kOutput] += stage.mtp;
  StagePasses sum;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto kind = static_cast<LayerKind>(i);
    const int times = counts[kind];
    if (times == 0) continue;
    const LayerCost& one = costs[kind];
    sum.forward += 1.0 * times * one.forward;
    const int others = one.backward_of_others ? times - again[kind] : 0;
    sum.backward_input += 1.0 * (times - others) * one.backward_input;
    if (others > 0) sum.backward_input += 1.0 * others * *one.backward_of_others;
    sum.backward_weight += 1.0 * times * one.backward_weight;
    sum.recompute += 1.0 * again[kind] * one.again;
  }
  return sum;
}

}  // namespace pipesim
