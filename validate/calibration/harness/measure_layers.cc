#include <array>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/calibration/harness/layer.h"
#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

template <class Layer>
using Pass = void (Layer::*)(cudaStream_t);

// Each pass by itself, with the kernels of the pass back to back as a framework enqueues them.
template <class Layer>
void measure_passes(Session& session, const LayerSlice& slice, const char* group, Layer& layer,
                    const std::vector<MatmulSpec>& matmuls) {
  const std::array<std::pair<char, Pass<Layer>>, 3> passes{
      {{'F', &Layer::forward}, {'B', &Layer::backward_input}, {'W', &Layer::backward_weight}}};
  const std::array<MatmulPass, 3> kinds{MatmulPass::kForward, MatmulPass::kInputGradient,
                                        MatmulPass::kWeightGradient};
  // In order, so that every pass finds what the one before it leaves; and for as long as clocks
  // take to follow.
  constexpr double kSettleS = 0.3;
  const Work in_turn = [&, pass = std::size_t{0}](cudaStream_t stream, int) mutable {
    (layer.*passes[pass++ % passes.size()].second)(stream);
  };
  session.timer.keep_busy(in_turn, session.plan.burn_in_s > 0 ? kSettleS : 0);
  const RunsAhead ahead(session.timer, in_turn);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto [name, pass] = passes[i];
    Point point = point_of(slice, group, name);
    for (const MatmulSpec& spec : matmuls) {
      if (spec.pass == kinds[i]) point.flops += spec.flops();
    }
    if (std::string_view(group) == "layer") {
      if (name == 'F') point.flops += slice.attention().attention(false).flops.value();
      if (name == 'B') point.flops += slice.attention().attention(true).flops.value();
    }
    session.attempt(std::move(point), [&, pass = pass](Point& p) {
      session.timer.measure(p, [&](cudaStream_t stream, int) { (layer.*pass)(stream); });
    });
  }
}

constexpr int kPasses = 3;

}  // namespace

Work layer_work(Session& session, const LayerSlice& slice) {
  auto layer = std::make_shared<TransformerLayer>(session.cublas, session.attention, slice);
  return [layer, pass = 0](cudaStream_t stream, int) mutable {
    switch (pass++ % kPasses) {
      case 0:
        return layer->forward(stream);
      case 1:
        return layer->backward_input(stream);
      default:
        return layer->backward_weight(stream);
    }
  };
}

void measure_layers(Session& session) {
  session.burn_in();
  for (const LayerSlice& slice : session.plan.layers) {
    // Building a layer takes memory, which a small card may not have: that too is an attempt.
    const auto refused = [&](const char* group, const std::exception& error) {
      session.not_measured(point_of(slice, group, 'F').key() + " and B and W", error.what());
    };
    try {
      TransformerLayer layer(session.cublas, session.attention, slice);
      measure_passes(session, slice, "layer", layer, layer_matmuls(slice, Precision::kBf16));
    } catch (const OutOfMemory& error) {
      refused("layer", error);
    } catch (const LibraryError& error) {
      refused("layer", error);
    }
    try {
      VocabularyLayer layer(session.cublas, slice);
      measure_passes(session, slice, "vocabulary", layer,
                     vocabulary_matmuls(slice, Precision::kBf16));
    } catch (const OutOfMemory& error) {
      refused("vocabulary", error);
    } catch (const LibraryError& error) {
      refused("vocabulary", error);
    }
  }
}

}  // namespace pipesim::calibration
