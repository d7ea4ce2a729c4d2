// Launches of our own kernels: norms, softmax, activations, dropout, Adam, fills, delays.
//
// All are asynchronous on `stream`. Matrices are row-major and packed, `columns` a multiple of 8,
// pointers aligned to 16 bytes; bf16 unless the type says otherwise. The arithmetic stands in
// rows.h and elements.h. Errors: std::invalid_argument for sizes a kernel does not take, CudaError
// when a launch fails.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

#include "validate/calibration/harness/elements.h"
#include "validate/calibration/harness/rows.h"

namespace pipesim::calibration::kernels {

struct Matrix {
  int64_t rows = 0, columns = 0;
  [[nodiscard]] int64_t size() const { return rows * columns; }
};

void empty(cudaStream_t stream);
// Keeps one thread busy for a time, so that what is enqueued behind it starts without gaps.
void delay(uint64_t nanoseconds, cudaStream_t stream);
// Writes the device's clock, in nanoseconds.
void stamp(uint64_t* at, cudaStream_t stream);
// Goes on when that clock is `nanoseconds` past what is stamped at `origin`. It waits for a time
// and for nothing that anybody does, so that it always ends.
void hold_until(const uint64_t* origin, uint64_t nanoseconds, cudaStream_t stream);

void fill_normal(Bfloat16* out, int64_t count, uint64_t seed, float scale, cudaStream_t stream);
void fill_normal(float* out, int64_t count, uint64_t seed, float scale, cudaStream_t stream);
void fill_normal_fp8(uint8_t* out, int64_t count, uint64_t seed, cudaStream_t stream);
// Uniform in [0, bound).
void fill_labels(int32_t* out, int64_t count, int32_t bound, uint64_t seed, cudaStream_t stream);

void copy(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t stream);
void residual_add(Matrix m, const Bfloat16* a, const Bfloat16* b, Bfloat16* y, cudaStream_t stream);
void dropout_add_forward(Matrix m, Dropout dropout, const Bfloat16* x, const Bfloat16* residual,
                         Bfloat16* y, uint8_t* mask, cudaStream_t stream);
void dropout_backward(Matrix m, Dropout dropout, const Bfloat16* dy, const uint8_t* mask,
                      Bfloat16* dx, cudaStream_t stream);

struct Norm {
  bool centred = true;  // layer norm; false: RMS norm
  float epsilon = 1e-5F;
};
void norm_forward(Matrix m, Norm norm, const Bfloat16* x, const Bfloat16* weight, Bfloat16* y,
                  NormStatistics* saved, cudaStream_t stream);
void norm_backward(Matrix m, Norm norm, const Bfloat16* x, const Bfloat16* weight,
                   const Bfloat16* dy, const NormStatistics* saved, Bfloat16* dx,
                   cudaStream_t stream);
// dweight[c] = sum over rows of dy x^, in two launches; `partial` holds
// norm_partial_rows() x columns floats.
[[nodiscard]] int64_t norm_partial_rows();
void norm_weight_gradient(Matrix m, const Bfloat16* x, const Bfloat16* dy,
                          const NormStatistics* saved, float* partial, float* dweight,
                          cudaStream_t stream);

void gelu_forward(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t stream);
void gelu_backward(Matrix m, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx,
                   cudaStream_t stream);
// `m` is the size of the output; each input row holds the gate's columns, then the other half's.
void swiglu_forward(Matrix m, const Bfloat16* gate_and_up, Bfloat16* y, cudaStream_t stream);
void swiglu_backward(Matrix m, const Bfloat16* gate_and_up, const Bfloat16* dy, Bfloat16* d_both,
                     cudaStream_t stream);

// With `causal_period` s > 0, row r of the matrix sees its first (r mod s) + 1 columns only.
void softmax_forward(Matrix m, float scale, int64_t causal_period, const Bfloat16* x, Bfloat16* y,
                     cudaStream_t stream);
void softmax_backward(Matrix m, float scale, const Bfloat16* y, const Bfloat16* dy, Bfloat16* dx,
                      cudaStream_t stream);
void cross_entropy_forward(Matrix m, const Bfloat16* logits, const int32_t* labels, float* loss,
                           float* log_sum, cudaStream_t stream);
void cross_entropy_backward(Matrix m, float scale, const Bfloat16* logits, const int32_t* labels,
                            const float* log_sum, Bfloat16* dx, cudaStream_t stream);

// `count` is a multiple of 4.
void adam_step(int64_t count, AdamSettings settings, const float* gradient, float* weight,
               float* first, float* second, Bfloat16* copy, cudaStream_t stream);

}  // namespace pipesim::calibration::kernels
