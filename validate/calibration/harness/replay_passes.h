// The passes of a model's stages as real kernels: those of one layer, as often as a stage has
// layers, and of the vocabulary where a stage has the output.
//
// All layers of all stages share one layer's weights, activations and gradients, so that a pass
// takes the time of its kernels whatever else is in memory. All passes go on one stream, since they
// share. A pass reads the values that the last one left, from any microbatch. The input embedding
// has no kernels. Errors: as of layer.h; InfeasibleError for passes that have no kernels.
#pragma once

#include <optional>

#include "validate/calibration/harness/layer.h"
#include "validate/calibration/replay_row.h"

namespace pipesim::calibration {

class ReplayPasses {
 public:
  ReplayPasses(const CublasHandle& cublas, const AttentionLibrary& library,
               const LayerSlice& slice);

  // Makes what the stage needs, and waits for it; before its first pass.
  void prepare(const StageContent& stage);
  void enqueue(PassKind pass, const StageContent& stage, cudaStream_t stream);

 private:
  void forward(const StageContent& stage, cudaStream_t stream);
  void backward(const StageContent& stage, bool with_weights, cudaStream_t stream);
  void weights(const StageContent& stage, cudaStream_t stream);

  const CublasHandle& cublas_;
  LayerSlice slice_;
  TransformerLayer layer_;
  std::optional<VocabularyLayer> vocabulary_;
};

}  // namespace pipesim::calibration
