// The parts of a transformer's passes beside matrix products, in float32 on one core. Matrices lie
// row after row; backward functions add to gradients of weights and set gradients of inputs.
#pragma once

#include <span>

namespace pipesim::runtime {

// Normalizes T rows of h; Zhang and Sennrich 2019 (arXiv 1910.07467).
void rms_norm(std::span<const float> x, std::span<const float> gain, std::span<float> y);
void rms_norm_backward(std::span<const float> x, std::span<const float> gain,
                       std::span<const float> dy, std::span<float> dx, std::span<float> dgain);

// The tanh form, Hendrycks and Gimpel 2016 (arXiv 1606.08415).
void gelu(std::span<const float> x, std::span<float> y);
void gelu_backward(std::span<const float> x, std::span<const float> dy, std::span<float> dx);

// y = a + b, which may be y.
void add(std::span<const float> a, std::span<const float> b, std::span<float> y);

// Causal attention of `batch` sequences of `length`. `qkv` has rows of queries, keys and values,
// each of heads x size; `lse` the logarithm of every row's sum of exponentials. The backward makes
// the scores again from it (Dao 2023, arXiv 2307.08691).
struct AttentionSize {
  int batch = 1, length = 0, heads = 1, size = 0;
  [[nodiscard]] int width() const { return heads * size; }
};
void attention(const AttentionSize& of, std::span<const float> qkv, std::span<float> out,
               std::span<float> lse);
void attention_backward(const AttentionSize& of, std::span<const float> qkv,
                        std::span<const float> out, std::span<const float> lse,
                        std::span<const float> dout, std::span<float> dqkv);

// Rows of logits become softmax; returns the mean over rows of -log of the target's share.
double cross_entropy(std::span<float> logits, std::span<const int> targets);
// The gradient of that mean by the logits.
void cross_entropy_backward(std::span<const float> softmax, std::span<const int> targets,
                            std::span<float> dlogits);

}  // namespace pipesim::runtime
