#include "validate/calibration/harness/replay_passes.h"

#include <string>

#include "sim/core/error.h"

namespace pipesim::calibration {
namespace {

// Once in order, so that every pass finds what the one before it leaves.
template <class Layer>
void run_once(Layer& layer) {
  const Stream stream;
  layer.forward(stream.get());
  layer.backward_input(stream.get());
  layer.backward_weight(stream.get());
  stream.synchronize();
}

}  // namespace

ReplayPasses::ReplayPasses(const CublasHandle& cublas, const AttentionLibrary& library,
                           const LayerSlice& slice)
    : cublas_(cublas), slice_(slice), layer_(cublas, library, slice) {
  run_once(layer_);
}

void ReplayPasses::prepare(const StageContent& stage) {
  if (!stage.output || vocabulary_) return;
  vocabulary_.emplace(cublas_, slice_);
  run_once(*vocabulary_);
}

void ReplayPasses::enqueue(PassKind pass, const StageContent& stage, cudaStream_t stream) {
  if (stage.output && !vocabulary_) throw LogicError("a stage's output is not prepared");
  switch (pass) {
    case PassKind::kF:
      return forward(stage, stream);
    case PassKind::kR:  // the output is not run again
      return forward({stage.layers, false}, stream);
    case PassKind::kB:
      return backward(stage, false, stream);
    case PassKind::kBW:
      return backward(stage, true, stream);
    case PassKind::kW:
      return weights(stage, stream);
    default:
      throw InfeasibleError(std::string("there are no kernels for passes ") +
                            std::string(to_text(pass)));
  }
}

void ReplayPasses::forward(const StageContent& stage, cudaStream_t stream) {
  for (int layer = 0; layer < stage.layers; ++layer) layer_.forward(stream);
  if (stage.output) vocabulary_->forward(stream);
}

void ReplayPasses::backward(const StageContent& stage, bool with_weights, cudaStream_t stream) {
  if (stage.output) {
    vocabulary_->backward_input(stream);
    if (with_weights) vocabulary_->backward_weight(stream);
  }
  for (int layer = 0; layer < stage.layers; ++layer) {
    layer_.backward_input(stream);
    if (with_weights) layer_.backward_weight(stream);
  }
}

void ReplayPasses::weights(const StageContent& stage, cudaStream_t stream) {
  if (stage.output) vocabulary_->backward_weight(stream);
  for (int layer = 0; layer < stage.layers; ++layer) layer_.backward_weight(stream);
}

}  // namespace pipesim::calibration
