// Seconds of one microbatch's forward of a stage together with another's backward of the same or
// another stage. The streams are models/pair.h's, with the parts of modelled layers.
//
// Layers of decoder and MTP modules are paired; embedding, encoder and output run before and after
// them. The exchange of tokens of a pass is dispatch and combine, by their bytes. The element-wise
// tail of combine takes the GPU whichever stream it is on, and counts with attention. Without an
// exchange the two passes take their sum.
#pragma once

#include "models/layer_cost.h"
#include "models/layout.h"

namespace pipesim {

class StagePairs {
 public:
  // Keeps references; requires what layer_costs requires, which made `costs`.
  StagePairs(const Transformer& model, const CostSetting& setting, const Hardware& hardware,
             const LayerCosts& costs);

  // O(layers of both); allocates.
  [[nodiscard]] Seconds seconds(const StageLayers& forward, const StageLayers& backward) const;

 private:
  struct Parts {
    ForwardParts forward;
    BackwardParts backward;
  };
  // With the B of layers that are recomputed, or of the others.
  [[nodiscard]] Parts parts_of(LayerKind kind, bool remade, const CostSetting& setting,
                               const Hardware& hardware) const;

  const Transformer& model_;
  const LayerCosts& costs_;
  PairOptions options_;
  bool exchanges_ = false;
  RecomputedLayers recomputed_;
  EnumArray<LayerKind, Parts> parts_{};
  EnumArray<LayerKind, Parts> others_{};  // layers that are not recomputed
};

}  // namespace pipesim
