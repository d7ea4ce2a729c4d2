#include <algorithm>
#include <cuda_fp8.h>
#include <stdexcept>
#include <string>

#include "validate/calibration/harness/cuda_resource.h"
#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kPartialRows = 64;

// The threads of a CUDA block; reductions go through the warps, then through shared memory.
class DeviceBlock {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ float sum(float value) {
    return reduce(value, 0.0F, [](float a, float b) { return a + b; });
  }
  __device__ float max(float value) {
    return reduce(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  }

 private:
  template <class F>
  __device__ float reduce(float value, float neutral, F combine) {
    __shared__ float warps[kThreads / kWarp];
    const int lane = thread() % kWarp;
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (lane == 0) warps[thread() / kWarp] = value;
    __syncthreads();
    value = lane < threads() / kWarp ? warps[lane] : neutral;
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    __syncthreads();  // `warps` may be written again
    return value;
  }
};

void check_launch(const char* name) { check_cuda(cudaGetLastError(), name); }

void require_packed(Matrix m, const char* name) {
  if (m.rows < 1 || m.columns < kPack || m.columns % kPack != 0 || m.columns > INT32_MAX ||
      m.rows > INT32_MAX) {
    throw std::invalid_argument(std::string(name) + ": " + std::to_string(m.rows) + " x " +
                                std::to_string(m.columns) + " is not a packed matrix");
  }
}

// One thread per pack.
template <class F>
__global__ void pack_kernel(int64_t packs, F body) {
  const int64_t p = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p < packs) body(p);
}

template <class F>
void for_each(int64_t items, const char* name, cudaStream_t stream, F body) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  pack_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(items, body);
  check_launch(name);
}

// One block per row.
template <class F>
__global__ void __launch_bounds__(kThreads) row_kernel(F body) {
  DeviceBlock block;
  body(block, static_cast<int64_t>(blockIdx.x));
}

template <class F>
void for_each_row(Matrix m, const char* name, cudaStream_t stream, F body) {
  require_packed(m, name);
  row_kernel<<<static_cast<unsigned>(m.rows), kThreads, 0, stream>>>(body);
  check_launch(name);
}

__device__ const Pack& pack_at(const Bfloat16* x, int64_t p) {
  return reinterpret_cast<const Pack*>(x)[p];
}
__device__ Pack& pack_at(Bfloat16* x, int64_t p) { return reinterpret_cast<Pack*>(x)[p]; }

template <class F>
void for_each_pack(Matrix m, const char* name, cudaStream_t stream, F body) {
  require_packed(m, name);
  for_each(m.size() / kPack, name, stream, body);
}

// A normal number from two uniform ones (Box and Muller).
__device__ float normal(uint64_t seed, int64_t index) {
  const auto counter = static_cast<uint64_t>(index);
  const float u = (static_cast<float>(random_bits(seed, 2 * counter) >> 8) + 1.0F) * 0x1p-24F;
  const float v = static_cast<float>(random_bits(seed, 2 * counter + 1) >> 8) * 0x1p-24F;
  return sqrtf(-2.0F * __logf(u)) * __cosf(6.2831853F * v);
}

__global__ void empty_kernel() {}

__device__ uint64_t device_clock() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void delay_kernel(uint64_t nanoseconds) {
  const uint64_t start = device_clock();
  while (device_clock() - start < nanoseconds) {
  }
}

__global__ void stamp_kernel(uint64_t* at) { *at = device_clock(); }

__global__ void hold_kernel(const uint64_t* origin, uint64_t nanoseconds) {
  const uint64_t until = *origin + nanoseconds;
  // Asleep between looks: the other streams compute meanwhile.
  while (device_clock() < until) __nanosleep(500);
}

// Column sums of dy x^ over every kPartialRows-th row, two neighbouring columns per thread.
__global__ void partial_gradient_kernel(int64_t rows, int64_t columns, const Bfloat16* x,
                                        const Bfloat16* dy, const NormStatistics* saved,
                                        float* partial) {
  const int64_t column = 2 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  float sums[2] = {0, 0};
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const NormStatistics s = saved[row];
    const auto both_x = *reinterpret_cast<const uint32_t*>(x + row * columns + column);
    const auto both_dy = *reinterpret_cast<const uint32_t*>(dy + row * columns + column);
    const float x0 = __uint_as_float(both_x << 16), x1 = __uint_as_float(both_x & 0xffff0000u);
    const float d0 = __uint_as_float(both_dy << 16), d1 = __uint_as_float(both_dy & 0xffff0000u);
    sums[0] += d0 * (x0 - s.mean) * s.inverse;
    sums[1] += d1 * (x1 - s.mean) * s.inverse;
  }
  partial[blockIdx.y * columns + column] = sums[0];
  partial[blockIdx.y * columns + column + 1] = sums[1];
}

}  // namespace

void empty(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  check_launch("empty kernel");
}

void delay(uint64_t nanoseconds, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  check_launch("delay kernel");
}

void stamp(uint64_t* at, cudaStream_t stream) {
  stamp_kernel<<<1, 1, 0, stream>>>(at);
  check_launch("stamp kernel");
}

void hold_until(const uint64_t* origin, uint64_t nanoseconds, cudaStream_t stream) {
  hold_kernel<<<1, 1, 0, stream>>>(origin, nanoseconds);
  check_launch("hold kernel");
}

void fill_normal(Bfloat16* out, int64_t count, uint64_t seed, float scale, cudaStream_t stream) {
  for_each(count, "fill bf16", stream,
           [=] __device__(int64_t i) { out[i] = Bfloat16::of(scale * normal(seed, i)); });
}

void fill_normal(float* out, int64_t count, uint64_t seed, float scale, cudaStream_t stream) {
  for_each(count, "fill fp32", stream,
           [=] __device__(int64_t i) { out[i] = scale * normal(seed, i); });
}

void fill_normal_fp8(uint8_t* out, int64_t count, uint64_t seed, cudaStream_t stream) {
  for_each(count, "fill fp8", stream, [=] __device__(int64_t i) {
    out[i] =
        static_cast<uint8_t>(__nv_cvt_float_to_fp8(normal(seed, i), __NV_SATFINITE, __NV_E4M3));
  });
}

void fill_labels(int32_t* out, int64_t count, int32_t bound, uint64_t seed, cudaStream_t stream) {
  for_each(count, "fill labels", stream, [=] __device__(int64_t i) {
    out[i] = static_cast<int32_t>(random_bits(seed, static_cast<uint64_t>(i)) %
                                  static_cast<uint32_t>(bound));
  });
}

void copy(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t stream) {
  for_each_pack(m, "copy", stream, [=] __device__(int64_t p) { pack_at(y, p) = pack_at(x, p); });
}

void residual_add(Matrix m, const Bfloat16* a, const Bfloat16* b, Bfloat16* y,
                  cudaStream_t stream) {
  for_each_pack(m, "residual add", stream,
                [=] __device__(int64_t p) { pack_at(y, p) = add(pack_at(a, p), pack_at(b, p)); });
}

void dropout_add_forward(Matrix m, Dropout dropout, const Bfloat16* x, const Bfloat16* residual,
                         Bfloat16* y, uint8_t* mask, cudaStream_t stream) {
  for_each_pack(m, "dropout add", stream, [=] __device__(int64_t p) {
    MaskPack keep;
    pack_at(y, p) = calibration::dropout_add_forward(dropout, pack_at(x, p), pack_at(residual, p),
                                                     static_cast<uint64_t>(p) * kPack, keep);
    reinterpret_cast<MaskPack*>(mask)[p] = keep;
  });
}

void dropout_backward(Matrix m, Dropout dropout, const Bfloat16* dy, const uint8_t* mask,
                      Bfloat16* dx, cudaStream_t stream) {
  for_each_pack(m, "dropout backward", stream, [=] __device__(int64_t p) {
    pack_at(dx, p) = calibration::dropout_backward(dropout, pack_at(dy, p),
                                                   reinterpret_cast<const MaskPack*>(mask)[p]);
  });
}

void norm_forward(Matrix m, Norm norm, const Bfloat16* x, const Bfloat16* weight, Bfloat16* y,
                  NormStatistics* saved, cudaStream_t stream) {
  for_each_row(m, "norm forward", stream, [=] __device__(DeviceBlock & block, int64_t row) {
    calibration::norm_forward(block, norm.centred, x + row * m.columns, weight, y + row * m.columns,
                              saved + row, static_cast<int>(m.columns), norm.epsilon);
  });
}

void norm_backward(Matrix m, Norm norm, const Bfloat16* x, const Bfloat16* weight,
                   const Bfloat16* dy, const NormStatistics* saved, Bfloat16* dx,
                   cudaStream_t stream) {
  for_each_row(m, "norm backward", stream, [=] __device__(DeviceBlock & block, int64_t row) {
    calibration::norm_backward(block, norm.centred, x + row * m.columns, weight,
                               dy + row * m.columns, saved[row], dx + row * m.columns,
                               static_cast<int>(m.columns));
  });
}

int64_t norm_partial_rows() { return kPartialRows; }

void norm_weight_gradient(Matrix m, const Bfloat16* x, const Bfloat16* dy,
                          const NormStatistics* saved, float* partial, float* dweight,
                          cudaStream_t stream) {
  require_packed(m, "norm weight gradient");
  const auto blocks = static_cast<unsigned>((m.columns / 2 + kThreads / 2 - 1) / (kThreads / 2));
  partial_gradient_kernel<<<dim3(blocks, kPartialRows), kThreads / 2, 0, stream>>>(
      m.rows, m.columns, x, dy, saved, partial);
  check_launch("norm weight gradient");
  for_each(m.columns, "norm weight gradient sum", stream, [=] __device__(int64_t column) {
    float sum = 0;
    for (int64_t i = 0; i < kPartialRows; ++i) sum += partial[i * m.columns + column];
    dweight[column] = sum;
  });
}

void gelu_forward(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t stream) {
  for_each_pack(m, "gelu forward", stream, [=] __device__(int64_t p) {
    pack_at(y, p) = calibration::gelu_forward(pack_at(x, p));
  });
}

void gelu_backward(Matrix m, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx,
                   cudaStream_t stream) {
  for_each_pack(m, "gelu backward", stream, [=] __device__(int64_t p) {
    pack_at(dx, p) = calibration::gelu_backward(pack_at(x, p), pack_at(dy, p));
  });
}

void swiglu_forward(Matrix m, const Bfloat16* gate_and_up, Bfloat16* y, cudaStream_t stream) {
  const int64_t width = m.columns / kPack;
  for_each_pack(m, "swiglu forward", stream, [=] __device__(int64_t p) {
    const int64_t gate = (p / width) * 2 * width + p % width;
    pack_at(y, p) =
        calibration::swiglu_forward(pack_at(gate_and_up, gate), pack_at(gate_and_up, gate + width));
  });
}

void swiglu_backward(Matrix m, const Bfloat16* gate_and_up, const Bfloat16* dy, Bfloat16* d_both,
                     cudaStream_t stream) {
  const int64_t width = m.columns / kPack;
  for_each_pack(m, "swiglu backward", stream, [=] __device__(int64_t p) {
    const int64_t gate = (p / width) * 2 * width + p % width;
    const GatedGradient d = calibration::swiglu_backward(
        pack_at(gate_and_up, gate), pack_at(gate_and_up, gate + width), pack_at(dy, p));
    pack_at(d_both, gate) = d.gate;
    pack_at(d_both, gate + width) = d.up;
  });
}

void softmax_forward(Matrix m, float scale, int64_t causal_period, const Bfloat16* x, Bfloat16* y,
                     cudaStream_t stream) {
  for_each_row(m, "softmax forward", stream, [=] __device__(DeviceBlock & block, int64_t row) {
    const auto columns = static_cast<int>(m.columns);
    const int valid =
        causal_period > 0 ? min(static_cast<int>(row % causal_period) + 1, columns) : columns;
    calibration::softmax_forward(block, x + row * m.columns, y + row * m.columns, columns, valid,
                                 scale);
  });
}

void softmax_backward(Matrix m, float scale, const Bfloat16* y, const Bfloat16* dy, Bfloat16* dx,
                      cudaStream_t stream) {
  for_each_row(m, "softmax backward", stream, [=] __device__(DeviceBlock & block, int64_t row) {
    calibration::softmax_backward(block, y + row * m.columns, dy + row * m.columns,
                                  dx + row * m.columns, static_cast<int>(m.columns), scale);
  });
}

void cross_entropy_forward(Matrix m, const Bfloat16* logits, const int32_t* labels, float* loss,
                           float* log_sum, cudaStream_t stream) {
  for_each_row(
      m, "cross entropy forward", stream, [=] __device__(DeviceBlock & block, int64_t row) {
        calibration::cross_entropy_forward(block, logits + row * m.columns, labels[row], loss + row,
                                           log_sum + row, static_cast<int>(m.columns));
      });
}

void cross_entropy_backward(Matrix m, float scale, const Bfloat16* logits, const int32_t* labels,
                            const float* log_sum, Bfloat16* dx, cudaStream_t stream) {
  for_each_row(m, "cross entropy backward", stream,
               [=] __device__(DeviceBlock & block, int64_t row) {
                 calibration::cross_entropy_backward(block, logits + row * m.columns, labels[row],
                                                     log_sum[row], dx + row * m.columns,
                                                     static_cast<int>(m.columns), scale);
               });
}

void adam_step(int64_t count, AdamSettings settings, const float* gradient, float* weight,
               float* first, float* second, Bfloat16* copy, cudaStream_t stream) {
  if (count < 4 || count % 4 != 0) {
    throw std::invalid_argument("adam: the number of parameters is not a multiple of 4");
  }
  for_each(count / 4, "adam", stream, [=] __device__(int64_t p) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[p];
    float4 w = reinterpret_cast<float4*>(weight)[p];
    float4 m = reinterpret_cast<float4*>(first)[p];
    float4 v = reinterpret_cast<float4*>(second)[p];
    const auto step = [&](float& weight_i, float& first_i, float& second_i, float gradient_i) {
      const AdamState s =
          calibration::adam_step(settings, {weight_i, first_i, second_i}, gradient_i);
      weight_i = s.weight;
      first_i = s.first;
      second_i = s.second;
    };
    step(w.x, m.x, v.x, g.x);
    step(w.y, m.y, v.y, g.y);
    step(w.z, m.z, v.z, g.z);
    step(w.w, m.w, v.w, g.w);
    reinterpret_cast<float4*>(weight)[p] = w;
    reinterpret_cast<float4*>(first)[p] = m;
    reinterpret_cast<float4*>(second)[p] = v;
    Bfloat16* out = copy + 4 * p;
    out[0] = Bfloat16::of(w.x);
    out[1] = Bfloat16::of(w.y);
    out[2] = Bfloat16::of(w.z);
    out[3] = Bfloat16::of(w.w);
  });
}

}  // namespace pipesim::calibration::kernels
