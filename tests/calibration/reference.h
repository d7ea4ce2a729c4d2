// The kernels' results in double precision, computed in the plainest way, and random inputs.
//
// Matrices are row-major vectors of double; inputs are the bf16 values that the kernels read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "validate/calibration/harness/bfloat16.h"

namespace pipesim::calibration::reference {

using Values = std::vector<double>;

inline std::vector<Bfloat16> random_bf16(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<Bfloat16> values(count);
  for (Bfloat16& value : values) value = Bfloat16::of(normal(generator));
  return values;
}

inline Values values(const std::vector<Bfloat16>& in) {
  Values out;
  for (const Bfloat16 value : in) out.push_back(value.value());
  return out;
}

// ||a - b|| / ||b||; NaN in `a` gives NaN, which no comparison accepts.
inline double distance(const Values& a, const Values& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a.at(i) - b[i]) * (a.at(i) - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

// bf16 rounds by up to 2^-9; the rms over many values is about a third of that.
inline constexpr double kBf16Tolerance = 3e-3;
inline constexpr double kFp32Tolerance = 1e-5;

struct Normalised {
  Values y, mean, inverse;
};

inline Normalised norm_forward(const Values& x, const Values& weight, bool centred,
                               double epsilon) {
  const std::size_t columns = weight.size();
  Normalised out;
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    const double* in = &x[row * columns];
    double mean = 0, variance = 0;
    if (centred) {
      for (std::size_t c = 0; c < columns; ++c) mean += in[c] / static_cast<double>(columns);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      variance += (in[c] - mean) * (in[c] - mean) / static_cast<double>(columns);
    }
    const double inverse = 1 / std::sqrt(variance + epsilon);
    out.mean.push_back(mean);
    out.inverse.push_back(inverse);
    for (std::size_t c = 0; c < columns; ++c) out.y.push_back((in[c] - mean) * inverse * weight[c]);
  }
  return out;
}

// The gradient by its definition: dx_j = sum_i dy_i weight_i d(x^_i)/d(x_j), summed in full.
inline Values norm_backward(const Values& x, const Values& weight, const Values& dy, bool centred,
                            double epsilon) {
  const std::size_t columns = weight.size();
  const auto n = static_cast<double>(columns);
  const Normalised forward = norm_forward(x, weight, centred, epsilon);
  Values dx(x.size(), 0.0);
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    const double mean = forward.mean[row], inverse = forward.inverse[row];
    for (std::size_t i = 0; i < columns; ++i) {
      const double g = dy[row * columns + i] * weight[i];
      const double normal = (x[row * columns + i] - mean) * inverse;
      for (std::size_t j = 0; j < columns; ++j) {
        const double other = (x[row * columns + j] - mean) * inverse;
        const double slope =
            inverse * ((i == j ? 1.0 : 0.0) - (centred ? 1 / n : 0.0) - normal * other / n);
        dx[row * columns + j] += g * slope;
      }
    }
  }
  return dx;
}

inline Values norm_weight_gradient(const Values& x, const Values& dy, const Values& mean,
                                   const Values& inverse, std::size_t columns) {
  Values gradient(columns, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    gradient[i % columns] += dy[i] * (x[i] - mean[i / columns]) * inverse[i / columns];
  }
  return gradient;
}

// causal_period 0: every row sees all columns.
inline Values softmax_forward(const Values& x, std::size_t columns, double scale,
                              std::size_t causal_period) {
  Values y(x.size(), 0.0);
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    const std::size_t valid = causal_period == 0 ? columns : row % causal_period + 1;
    double sum = 0;
    for (std::size_t c = 0; c < valid; ++c) sum += std::exp(scale * x[row * columns + c]);
    for (std::size_t c = 0; c < valid; ++c) {
      y[row * columns + c] = std::exp(scale * x[row * columns + c]) / sum;
    }
  }
  return y;
}

inline Values softmax_backward(const Values& y, const Values& dy, std::size_t columns,
                               double scale) {
  Values dx(y.size());
  for (std::size_t row = 0; row < y.size() / columns; ++row) {
    double aligned = 0;
    for (std::size_t c = 0; c < columns; ++c)
      aligned += y[row * columns + c] * dy[row * columns + c];
    for (std::size_t c = 0; c < columns; ++c) {
      dx[row * columns + c] = scale * y[row * columns + c] * (dy[row * columns + c] - aligned);
    }
  }
  return dx;
}

inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

inline double silu(double x) { return x / (1 + std::exp(-x)); }

// A derivative by central differences: independent of any formula of ours.
template <class F>
double slope(F f, double x) {
  constexpr double kStep = 1e-5;
  return (f(x + kStep) - f(x - kStep)) / (2 * kStep);
}

struct AttentionResult {
  Values o, d_q, d_k, d_v;
};

// Causal attention of one head in (sequence, depth) matrices, forward and backward.
inline AttentionResult attention(const Values& q, const Values& k, const Values& v,
                                 const Values& d_o, std::size_t sequence, std::size_t depth) {
  const double scale = 1 / std::sqrt(static_cast<double>(depth));
  const auto multiply = [](const Values& a, const Values& b, std::size_t m, std::size_t n,
                           std::size_t inner, bool transpose_a, bool transpose_b) {
    Values c(m * n, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t l = 0; l < inner; ++l) {
          c[i * n + j] += (transpose_a ? a[l * m + i] : a[i * inner + l]) *
                          (transpose_b ? b[j * inner + l] : b[l * n + j]);
        }
      }
    }
    return c;
  };
  const Values p = softmax_forward(multiply(q, k, sequence, sequence, depth, false, true), sequence,
                                   scale, sequence);
  const Values d_p = multiply(d_o, v, sequence, sequence, depth, false, true);
  const Values d_s = softmax_backward(p, d_p, sequence, scale);
  return {multiply(p, v, sequence, depth, sequence, false, false),
          multiply(d_s, k, sequence, depth, sequence, false, false),
          multiply(d_s, q, sequence, depth, sequence, true, false),
          multiply(p, d_o, sequence, depth, sequence, true, false)};
}

// Where element (batch, position, head, depth) of a tensor of so many heads lies.
enum class HeadLayout {
  kPacked,   // (batch, sequence, heads, depth), as cuDNN's kernels read it
  kByHeads,  // (batch, heads, sequence, depth), as strided batches of matmuls do
};
struct HeadTensor {
  HeadLayout layout = HeadLayout::kPacked;
  std::size_t batch = 1, heads = 1, sequence = 1, depth = 1;

  [[nodiscard]] std::size_t size() const { return batch * heads * sequence * depth; }
  [[nodiscard]] std::size_t at(std::size_t b, std::size_t s, std::size_t h, std::size_t d) const {
    return layout == HeadLayout::kPacked ? ((b * sequence + s) * heads + h) * depth + d
                                         : ((b * heads + h) * sequence + s) * depth + d;
  }
  // One head as a (sequence, depth) matrix, and added back to its place.
  [[nodiscard]] Values head(const Values& all, std::size_t b, std::size_t h) const {
    Values one(sequence * depth);
    for (std::size_t i = 0; i < one.size(); ++i) one[i] = all.at(at(b, i / depth, h, i % depth));
    return one;
  }
  void add(Values& all, std::size_t b, std::size_t h, const Values& one) const {
    for (std::size_t i = 0; i < one.size(); ++i) all.at(at(b, i / depth, h, i % depth)) += one[i];
  }
};

// Causal attention of several batches and heads; each of `kv` serves as many of `q`'s heads, those
// next to each other.
inline AttentionResult attention(const HeadTensor& q_shape, std::size_t kv_heads, const Values& q,
                                 const Values& k, const Values& v, const Values& d_o) {
  HeadTensor kv_shape = q_shape;
  kv_shape.heads = kv_heads;
  AttentionResult all{Values(q_shape.size()), Values(q_shape.size()), Values(kv_shape.size()),
                      Values(kv_shape.size())};
  for (std::size_t b = 0; b < q_shape.batch; ++b) {
    for (std::size_t h = 0; h < q_shape.heads; ++h) {
      const std::size_t served = h / (q_shape.heads / kv_heads);
      const AttentionResult one =
          attention(q_shape.head(q, b, h), kv_shape.head(k, b, served), kv_shape.head(v, b, served),
                    q_shape.head(d_o, b, h), q_shape.sequence, q_shape.depth);
      q_shape.add(all.o, b, h, one.o);
      q_shape.add(all.d_q, b, h, one.d_q);
      kv_shape.add(all.d_k, b, served, one.d_k);
      kv_shape.add(all.d_v, b, served, one.d_v);
    }
  }
  return all;
}

}  // namespace pipesim::calibration::reference
