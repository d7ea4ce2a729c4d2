#include "sim/runtime/layer_math.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/runtime/blas.h"

namespace pipesim::runtime {
namespace {

constexpr float kEpsilon = 1e-6F;
constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

float inverse_rms(const float* x, std::size_t width) {
  float squares = 0;
  for (std::size_t j = 0; j < width; ++j) squares += x[j] * x[j];
  return 1 / std::sqrt(squares / static_cast<float>(width) + kEpsilon);
}

// One head of one sequence: the start of its rows in qkv, and the matrices over pairs of tokens.
class Head {
 public:
  Head(const AttentionSize& of, int sequence, int head)
      : of_(of),
        first_(static_cast<std::size_t>(sequence) * of.length),
        column_(head * of.size),
        scale_(1 / std::sqrt(static_cast<float>(of.size))) {}

  [[nodiscard]] std::size_t row() const { return first_; }
  // 0 queries, 1 keys, 2 values.
  [[nodiscard]] const float* of_qkv(std::span<const float> qkv, int which) const {
    return qkv.data() + first_ * stride() + static_cast<std::size_t>(which * of_.width() + column_);
  }
  [[nodiscard]] float* of_qkv(std::span<float> qkv, int which) const {
    return qkv.data() + first_ * stride() + static_cast<std::size_t>(which * of_.width() + column_);
  }
  template <class T>
  [[nodiscard]] T* of_out(std::span<T> out) const {
    return out.data() + first_ * static_cast<std::size_t>(of_.width()) +
           static_cast<std::size_t>(column_);
  }
  [[nodiscard]] std::size_t stride() const { return 3 * static_cast<std::size_t>(of_.width()); }
  [[nodiscard]] int step() const { return 3 * of_.width(); }
  [[nodiscard]] float scale() const { return scale_; }

  // Scaled products of queries and keys.
  void scores(std::span<const float> qkv, std::vector<float>& into) const {
    const int n = of_.length;
    multiply({n, n, of_.size, scale_}, {of_qkv(qkv, 0), step()},
             {of_qkv(qkv, 1), step(), Turned::kYes}, into.data(), n);
  }

 private:
  const AttentionSize& of_;
  std::size_t first_;
  int column_;
  float scale_;
};

template <class Each>
void each_head(const AttentionSize& of, Each each) {
  for (int sequence = 0; sequence < of.batch; ++sequence) {
    for (int head = 0; head < of.heads; ++head) each(Head(of, sequence, head), head);
  }
}

}  // namespace

void rms_norm(std::span<const float> x, std::span<const float> gain, std::span<float> y) {
  const std::size_t width = gain.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    const float inverse = inverse_rms(&x[at], width);
    for (std::size_t j = 0; j < width; ++j) y[at + j] = x[at + j] * inverse * gain[j];
  }
}

void rms_norm_backward(std::span<const float> x, std::span<const float> gain,
                       std::span<const float> dy, std::span<float> dx, std::span<float> dgain) {
  const std::size_t width = gain.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    const float inverse = inverse_rms(&x[at], width);
    float along = 0;
    for (std::size_t j = 0; j < width; ++j) {
      const float normed = x[at + j] * inverse;
      along += dy[at + j] * gain[j] * normed;
      dgain[j] += dy[at + j] * normed;
    }
    along /= static_cast<float>(width);
    for (std::size_t j = 0; j < width; ++j) {
      dx[at + j] = inverse * (dy[at + j] * gain[j] - x[at + j] * inverse * along);
    }
  }
}

void gelu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float inner = kGeluScale * (x[i] + kGeluCube * x[i] * x[i] * x[i]);
    y[i] = 0.5F * x[i] * (1 + std::tanh(inner));
  }
}

void gelu_backward(std::span<const float> x, std::span<const float> dy, std::span<float> dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float tanh = std::tanh(kGeluScale * (x[i] + kGeluCube * x[i] * x[i] * x[i]));
    const float slope = kGeluScale * (1 + 3 * kGeluCube * x[i] * x[i]);
    dx[i] = dy[i] * (0.5F * (1 + tanh) + 0.5F * x[i] * (1 - tanh * tanh) * slope);
  }
}

void add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
}

void attention(const AttentionSize& of, std::span<const float> qkv, std::span<float> out,
               std::span<float> lse) {
  const int n = of.length;
  std::vector<float> shares(static_cast<std::size_t>(n) * n);
  each_head(of, [&](const Head& head, int number) {
    head.scores(qkv, shares);
    for (int i = 0; i < n; ++i) {
      float* row = &shares[static_cast<std::size_t>(i) * n];
      const float most = *std::max_element(row, row + i + 1);
      float sum = 0;
      for (int j = 0; j <= i; ++j) sum += row[j] = std::exp(row[j] - most);
      for (int j = 0; j <= i; ++j) row[j] /= sum;
      std::fill(row + i + 1, row + n, 0.0F);
      lse[(head.row() + i) * of.heads + number] = most + std::log(sum);
    }
    multiply({n, of.size, n}, {shares.data(), n}, {head.of_qkv(qkv, 2), head.step()},
             head.of_out(out), of.width());
  });
}

void attention_backward(const AttentionSize& of, std::span<const float> qkv,
                        std::span<const float> out, std::span<const float> lse,
                        std::span<const float> dout, std::span<float> dqkv) {
  const int n = of.length;
  std::vector<float> shares(static_cast<std::size_t>(n) * n);
  std::vector<float> slopes(shares.size());
  each_head(of, [&](const Head& head, int number) {
    head.scores(qkv, shares);
    multiply({n, n, of.size}, {head.of_out(dout), of.width()},
             {head.of_qkv(qkv, 2), head.step(), Turned::kYes}, slopes.data(), n);
    for (int i = 0; i < n; ++i) {
      float* share = &shares[static_cast<std::size_t>(i) * n];
      float* slope = &slopes[static_cast<std::size_t>(i) * n];
      const float* o = head.of_out(out) + static_cast<std::size_t>(i) * of.width();
      const float* d = head.of_out(dout) + static_cast<std::size_t>(i) * of.width();
      float along = 0;
      for (int j = 0; j < of.size; ++j) along += o[j] * d[j];
      const float shift = lse[(head.row() + i) * of.heads + number];
      for (int j = 0; j <= i; ++j) {
        share[j] = std::exp(share[j] - shift);
        slope[j] = share[j] * (slope[j] - along);
      }
      std::fill(share + i + 1, share + n, 0.0F);
      std::fill(slope + i + 1, slope + n, 0.0F);
    }
    multiply({n, of.size, n}, {shares.data(), n, Turned::kYes}, {head.of_out(dout), of.width()},
             head.of_qkv(dqkv, 2), head.step());
    multiply({n, of.size, n, head.scale()}, {slopes.data(), n}, {head.of_qkv(qkv, 1), head.step()},
             head.of_qkv(dqkv, 0), head.step());
    multiply({n, of.size, n, head.scale()}, {slopes.data(), n, Turned::kYes},
             {head.of_qkv(qkv, 0), head.step()}, head.of_qkv(dqkv, 1), head.step());
  });
}

double cross_entropy(std::span<float> logits, std::span<const int> targets) {
  const std::size_t width = logits.size() / targets.size();
  double loss = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    float* row = &logits[i * width];
    const float most = *std::max_element(row, row + width);
    float sum = 0;
    for (std::size_t j = 0; j < width; ++j) sum += row[j] = std::exp(row[j] - most);
    for (std::size_t j = 0; j < width; ++j) row[j] /= sum;
    loss -= std::log(std::max(row[targets[i]], 1e-30F));
  }
  return loss / static_cast<double>(targets.size());
}

void cross_entropy_backward(std::span<const float> softmax, std::span<const int> targets,
                            std::span<float> dlogits) {
  const std::size_t width = softmax.size() / targets.size();
  const float share = 1 / static_cast<float>(targets.size());
  for (std::size_t i = 0; i < softmax.size(); ++i) dlogits[i] = share * softmax[i];
  for (std::size_t i = 0; i < targets.size(); ++i) dlogits[i * width + targets[i]] -= share;
}

}  // namespace pipesim::runtime
