// A stage of a small GPT in float32: F, B and W apart, with the tensors that models/layer_memory.h
// counts kept between them.
//
// Causal fused attention, RMS norms, GELU, learned positions, no biases or dropout. A microbatch's
// loss is its tokens' mean cross entropy. Weights and tokens are made up, alike wherever they are
// made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/layout.h"
#include "models/transformer.h"
#include "sim/runtime/layer_math.h"

namespace pipesim::runtime {

struct SmallModel {
  Transformer shape;
  int batch = 1;  // sequences of a microbatch
  int length = 0;

  [[nodiscard]] std::size_t tokens() const { return static_cast<std::size_t>(batch) * length; }
};

// Why stages of this model are not computed here; empty where they are.
std::string why_not_small(const Transformer& model);

// Counts a device's kept bytes as in a bf16 model: 2 an element, or 4 for elements kept in fp32.
class Ledger {
 public:
  static constexpr std::size_t kBf16 = 2, kFp32 = 4;

  std::vector<float>& keep(std::vector<float>& tensor, std::size_t size, std::size_t each = kBf16) {
    tensor.resize(size);
    held_ += size * each;
    peak_ = std::max(peak_, held_);
    return tensor;
  }
  void drop(std::vector<float>& tensor, std::size_t each = kBf16) {
    held_ -= tensor.size() * each;
    std::vector<float>().swap(tensor);
  }
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] std::size_t peak() const { return peak_; }

 private:
  std::size_t held_ = 0;
  std::size_t peak_ = 0;
};

class StageMath {
 public:
  // Keeps a reference to the ledger, which stages of one device share: activations from F to B and
  // W, and gradients from B to W.
  StageMath(const SmallModel& model, const StageLayers& layers, Ledger& ledger);

  // The first stage's `input` is empty. Returns the next stage's input; on the last stage nothing.
  std::vector<float> forward(std::uint32_t unit, std::span<const float> input);
  // The last stage's `gradient` is empty. Returns the gradient for the stage before.
  std::vector<float> backward(std::uint32_t unit, std::span<const float> gradient);
  void weight_gradients(std::uint32_t unit);

  // Summed over what has run; gradients in the order of the weights.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] std::vector<float>& weights() { return weights_; }
  [[nodiscard]] const std::vector<float>& gradients() const { return gradients_; }

 private:
  struct LayerKept {
    std::vector<float> x, n1, qkv, lse, a, x1, n2, u, g;  // from F
    std::vector<float> dqkv, da, du, dy;                  // from B
  };
  struct UnitKept {
    std::vector<LayerKept> layers;
    std::vector<float> x, n, softmax, dlogits;  // of the output
  };
  struct LayerWeights {
    std::size_t norm1, qkv, out, norm2, first, second;  // where they begin
  };

  [[nodiscard]] std::span<float> weight(std::size_t at, std::size_t size) {
    return std::span(weights_).subspan(at, size);
  }
  [[nodiscard]] std::span<float> gradient(std::size_t at, std::size_t size) {
    return std::span(gradients_).subspan(at, size);
  }
  std::size_t place(std::size_t size, int layer, int part, float scale);
  std::vector<float> embed(std::uint32_t unit);
  void embed_backward(std::uint32_t unit, std::span<const float> gradient);
  std::vector<float> layer_forward(const LayerWeights& at, LayerKept& kept,
                                   std::span<const float> x);
  std::vector<float> layer_backward(const LayerWeights& at, LayerKept& kept,
                                    std::span<const float> dy);
  void layer_weight_gradients(const LayerWeights& at, LayerKept& kept);
  void output_forward(std::uint32_t unit, UnitKept& kept, std::span<const float> x);
  std::vector<float> output_backward(std::uint32_t unit, UnitKept& kept);
  [[nodiscard]] AttentionSize attention_size() const;

  SmallModel model_;
  StageLayers layers_;
  std::size_t hidden_, inner_, tokens_, vocabulary_;
  std::vector<float> weights_, gradients_;
  std::size_t embedding_ = 0, positions_ = 0, final_norm_ = 0, logits_ = 0;
  std::vector<LayerWeights> at_;
  std::map<std::uint32_t, UnitKept> kept_;
  Ledger& ledger_;
  double loss_ = 0;
};

}  // namespace pipesim::runtime
