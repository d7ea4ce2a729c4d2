// Bodies of the kernels that treat a matrix row by row: norms, softmax, cross entropy.
//
// One block treats one row of `columns` elements, a multiple of kPack; rows are bf16, arithmetic is
// fp32. A block is `thread()` of `threads()`, and `sum` and `max`, which all its threads call
// together and which return the result to all: so the bodies run, and are tested, without a GPU.
// Outputs may alias inputs only where a body says so. Backward bodies take what the forward ones
// saved. Source: the definitions of the operations; gradients derived from them.
#pragma once

#include <cmath>
#include <cstdint>

#include "validate/calibration/harness/bfloat16.h"

#ifdef __CUDACC__
// A body is compiled for both sides; the device's block is never used on the host.
#pragma nv_diagnostic push
#pragma nv_diag_suppress 20014
#endif

namespace pipesim::calibration {

struct NormStatistics {
  float mean;     // zero for an RMS norm
  float inverse;  // 1 / sqrt(variance + epsilon), about zero for an RMS norm
};

PIPESIM_HD inline float inverse_root(float x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return 1.0F / std::sqrt(x);
#endif
}

PIPESIM_HD inline float exponential(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);
#else
  return std::exp(x);
#endif
}

// Applies `f(pack, index of its first column)` to the packs of a row that this thread owns.
template <class Block, class F>
PIPESIM_HD void for_packs(Block& block, const Bfloat16* row, int columns, F f) {
  const auto* packs = reinterpret_cast<const Pack*>(row);
  for (int p = block.thread(); p < columns / kPack; p += block.threads()) {
    f(packs[p], p * kPack);
  }
}

PIPESIM_HD inline void store(Bfloat16* row, int column, const Pack& pack) {
  *reinterpret_cast<Pack*>(row + column) = pack;
}

PIPESIM_HD inline Pack load(const Bfloat16* row, int column) {
  return *reinterpret_cast<const Pack*>(row + column);
}

// y = (x - mean) inverse weight; `centred` distinguishes layer norm from RMS norm.
template <class Block>
PIPESIM_HD void norm_forward(Block& block, bool centred, const Bfloat16* x, const Bfloat16* weight,
                             Bfloat16* y, NormStatistics* saved, int columns, float epsilon) {
  float total = 0, squares = 0;
  for_packs(block, x, columns, [&](const Pack& in, int) {
    for (int i = 0; i < kPack; ++i) {
      const float v = in.item[i].value();
      total += v;
      squares += v * v;
    }
  });
  const auto n = static_cast<float>(columns);
  const float mean = centred ? block.sum(total) / n : 0.0F;
  const float variance = block.sum(squares) / n - mean * mean;
  const float inverse = inverse_root(variance + epsilon);
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    const Pack w = load(weight, column);
    Pack out;
    for (int i = 0; i < kPack; ++i) {
      out.item[i] = Bfloat16::of((in.item[i].value() - mean) * inverse * w.item[i].value());
    }
    store(y, column, out);
  });
  if (block.thread() == 0) *saved = {mean, inverse};
}

// dx of the above: inverse (g - mean(g) - x^ mean(g x^)), g = dy weight, x^ the normalised input.
template <class Block>
PIPESIM_HD void norm_backward(Block& block, bool centred, const Bfloat16* x, const Bfloat16* weight,
                              const Bfloat16* dy, const NormStatistics& saved, Bfloat16* dx,
                              int columns) {
  float total = 0, aligned = 0;
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    const Pack w = load(weight, column);
    const Pack gradient = load(dy, column);
    for (int i = 0; i < kPack; ++i) {
      const float g = gradient.item[i].value() * w.item[i].value();
      total += g;
      aligned += g * (in.item[i].value() - saved.mean) * saved.inverse;
    }
  });
  const auto n = static_cast<float>(columns);
  const float mean = centred ? block.sum(total) / n : 0.0F;
  const float slope = block.sum(aligned) / n;
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    const Pack w = load(weight, column);
    const Pack gradient = load(dy, column);
    Pack out;
    for (int i = 0; i < kPack; ++i) {
      const float g = gradient.item[i].value() * w.item[i].value();
      const float normal = (in.item[i].value() - saved.mean) * saved.inverse;
      out.item[i] = Bfloat16::of(saved.inverse * (g - mean - normal * slope));
    }
    store(dx, column, out);
  });
}

struct MaximumAndSum {
  float maximum;
  float sum;  // of exp(scale (x - maximum))
};

// Over the first `valid` columns. The running maximum keeps every exponent at or below zero.
template <class Block>
PIPESIM_HD MaximumAndSum scan_row(Block& block, const Bfloat16* x, int columns, int valid,
                                  float scale) {
  float maximum = -INFINITY;
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    for (int i = 0; i < kPack; ++i) {
      if (column + i < valid) maximum = fmaxf(maximum, in.item[i].value());
    }
  });
  maximum = block.max(maximum);
  float total = 0;
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    for (int i = 0; i < kPack; ++i) {
      if (column + i < valid) total += exponential(scale * (in.item[i].value() - maximum));
    }
  });
  return {maximum, block.sum(total)};
}

// y = softmax(scale x) over the first `valid` columns (1 or more), zero beyond. y may be x.
template <class Block>
PIPESIM_HD void softmax_forward(Block& block, const Bfloat16* x, Bfloat16* y, int columns,
                                int valid, float scale) {
  const MaximumAndSum row = scan_row(block, x, columns, valid, scale);
  const float inverse = 1.0F / row.sum;
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    Pack out;
    for (int i = 0; i < kPack; ++i) {
      const float e = exponential(scale * (in.item[i].value() - row.maximum)) * inverse;
      out.item[i] = Bfloat16::of(column + i < valid ? e : 0.0F);
    }
    store(y, column, out);
  });
}

// dx = scale y (dy - sum(dy y)). dx may be dy.
template <class Block>
PIPESIM_HD void softmax_backward(Block& block, const Bfloat16* y, const Bfloat16* dy, Bfloat16* dx,
                                 int columns, float scale) {
  float aligned = 0;
  for_packs(block, y, columns, [&](const Pack& in, int column) {
    const Pack gradient = load(dy, column);
    for (int i = 0; i < kPack; ++i) aligned += in.item[i].value() * gradient.item[i].value();
  });
  aligned = block.sum(aligned);
  for_packs(block, y, columns, [&](const Pack& in, int column) {
    const Pack gradient = load(dy, column);
    Pack out;
    for (int i = 0; i < kPack; ++i) {
      out.item[i] = Bfloat16::of(scale * in.item[i].value() * (gradient.item[i].value() - aligned));
    }
    store(dx, column, out);
  });
}

// loss = log(sum(exp(x))) - x[label]; the log-sum is saved for the backward pass.
template <class Block>
PIPESIM_HD void cross_entropy_forward(Block& block, const Bfloat16* x, int32_t label, float* loss,
                                      float* log_sum, int columns) {
  const MaximumAndSum row = scan_row(block, x, columns, columns, 1.0F);
  if (block.thread() == 0) {
    const float value = row.maximum + logf(row.sum);
    *log_sum = value;
    *loss = value - x[label].value();
  }
}

// dx = scale (softmax(x) - [column == label]). dx may be x.
template <class Block>
PIPESIM_HD void cross_entropy_backward(Block& block, const Bfloat16* x, int32_t label,
                                       float log_sum, Bfloat16* dx, int columns, float scale) {
  for_packs(block, x, columns, [&](const Pack& in, int column) {
    Pack out;
    for (int i = 0; i < kPack; ++i) {
      const float p = exponential(in.item[i].value() - log_sum);
      out.item[i] = Bfloat16::of(scale * (column + i == label ? p - 1.0F : p));
    }
    store(dx, column, out);
  });
}

}  // namespace pipesim::calibration

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
