#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "tests/calibration/harness/virtual_device.h"
#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration::kernels {

namespace {

struct Operand {
  const void* pointer;
  double bytes_per_element;
};

// A kernel over a matrix: its operands must lie in memory; it takes the time of their bytes.
void run(const char* name, Matrix m, cudaStream_t stream, std::initializer_list<Operand> operands) {
  if (m.columns % kPack != 0)
    virtual_device::fail(std::string(name) + " of columns that are no packs");
  double bytes = 0;
  for (const Operand& operand : operands) {
    const double size = operand.bytes_per_element * static_cast<double>(m.size());
    virtual_device::require_region(name, operand.pointer, static_cast<std::size_t>(size));
    bytes += size;
  }
  virtual_device::advance(stream,
                          virtual_device::kLaunchUs + bytes / virtual_device::kMemoryBytesPerUs);
}

// There is no memory to keep it in.
double& stamped_us(const uint64_t* at) {
  static std::map<const uint64_t*, double> instance;
  return instance[at];
}

void require_rows(const char* what, const void* pointer, int64_t count, std::size_t size) {
  virtual_device::require_region(what, pointer, static_cast<std::size_t>(count) * size);
}

}  // namespace

void empty(cudaStream_t stream) {
  if (virtual_device::state().capturing) {
    ++virtual_device::state().captured;
  } else {
    virtual_device::advance(stream, virtual_device::kEmptyKernelUs);
  }
}
void delay(uint64_t nanoseconds, cudaStream_t stream) {
  virtual_device::advance(stream, static_cast<double>(nanoseconds) * 1e-3);
}
void stamp(uint64_t* at, cudaStream_t stream) {
  virtual_device::require_region("stamp", at, sizeof(*at));
  virtual_device::advance(stream, virtual_device::kEmptyKernelUs);
  stamped_us(at) = virtual_device::time_of(stream);
}
void hold_until(const uint64_t* origin, uint64_t nanoseconds, cudaStream_t stream) {
  virtual_device::require_region("stamp", origin, sizeof(*origin));
  virtual_device::advance(stream, virtual_device::kEmptyKernelUs);
  double& now = virtual_device::time_of(stream);
  now = std::max(now, stamped_us(origin) + static_cast<double>(nanoseconds) * 1e-3);
}
void fill_normal(Bfloat16* out, int64_t count, uint64_t, float, cudaStream_t) {
  require_rows("fill", out, count, sizeof(*out));
}
void fill_normal(float* out, int64_t count, uint64_t, float, cudaStream_t) {
  require_rows("fill", out, count, sizeof(*out));
}
void fill_normal_fp8(uint8_t* out, int64_t count, uint64_t, cudaStream_t) {
  require_rows("fill", out, count, sizeof(*out));
}
void fill_labels(int32_t* out, int64_t count, int32_t, uint64_t, cudaStream_t) {
  require_rows("labels", out, count, sizeof(*out));
}
void copy(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t s) {
  run("copy", m, s, {{x, 2}, {y, 2}});
}
void residual_add(Matrix m, const Bfloat16* a, const Bfloat16* b, Bfloat16* y, cudaStream_t s) {
  run("residual add", m, s, {{a, 2}, {b, 2}, {y, 2}});
}
void dropout_add_forward(Matrix m, Dropout, const Bfloat16* x, const Bfloat16* residual,
                         Bfloat16* y, uint8_t* mask, cudaStream_t s) {
  run("dropout add", m, s, {{x, 2}, {residual, 2}, {y, 2}, {mask, 1}});
}
void dropout_backward(Matrix m, Dropout, const Bfloat16* dy, const uint8_t* mask, Bfloat16* dx,
                      cudaStream_t s) {
  run("dropout backward", m, s, {{dy, 2}, {mask, 1}, {dx, 2}});
}
void norm_forward(Matrix m, Norm, const Bfloat16* x, const Bfloat16* weight, Bfloat16* y,
                  NormStatistics* saved, cudaStream_t s) {
  require_rows("norm weight", weight, m.columns, sizeof(*weight));
  require_rows("norm statistics", saved, m.rows, sizeof(*saved));
  run("norm forward", m, s, {{x, 2}, {y, 2}});
}
void norm_backward(Matrix m, Norm, const Bfloat16* x, const Bfloat16* weight, const Bfloat16* dy,
                   const NormStatistics* saved, Bfloat16* dx, cudaStream_t s) {
  require_rows("norm weight", weight, m.columns, sizeof(*weight));
  require_rows("norm statistics", saved, m.rows, sizeof(*saved));
  run("norm backward", m, s, {{x, 2}, {dy, 2}, {dx, 2}});
}
int64_t norm_partial_rows() { return 64; }
void norm_weight_gradient(Matrix m, const Bfloat16* x, const Bfloat16* dy,
                          const NormStatistics* saved, float* partial, float* dweight,
                          cudaStream_t s) {
  require_rows("norm statistics", saved, m.rows, sizeof(*saved));
  require_rows("norm partial sums", partial, norm_partial_rows() * m.columns, sizeof(*partial));
  require_rows("norm gradient", dweight, m.columns, sizeof(*dweight));
  run("norm weight gradient", m, s, {{x, 2}, {dy, 2}});
}
void gelu_forward(Matrix m, const Bfloat16* x, Bfloat16* y, cudaStream_t s) {
  run("gelu forward", m, s, {{x, 2}, {y, 2}});
}
void gelu_backward(Matrix m, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx, cudaStream_t s) {
  run("gelu backward", m, s, {{x, 2}, {dy, 2}, {dx, 2}});
}
void swiglu_forward(Matrix m, const Bfloat16* both, Bfloat16* y, cudaStream_t s) {
  run("swiglu forward", m, s, {{both, 4}, {y, 2}});
}
void swiglu_backward(Matrix m, const Bfloat16* both, const Bfloat16* dy, Bfloat16* d_both,
                     cudaStream_t s) {
  run("swiglu backward", m, s, {{both, 4}, {dy, 2}, {d_both, 4}});
}
void softmax_forward(Matrix m, float, int64_t, const Bfloat16* x, Bfloat16* y, cudaStream_t s) {
  run("softmax forward", m, s, {{x, 2}, {y, 2}});
}
void softmax_backward(Matrix m, float, const Bfloat16* y, const Bfloat16* dy, Bfloat16* dx,
                      cudaStream_t s) {
  run("softmax backward", m, s, {{y, 2}, {dy, 2}, {dx, 2}});
}
void cross_entropy_forward(Matrix m, const Bfloat16* logits, const int32_t* labels, float* loss,
                           float* log_sum, cudaStream_t s) {
  require_rows("labels", labels, m.rows, sizeof(*labels));
  require_rows("loss", loss, m.rows, sizeof(*loss));
  require_rows("log sum", log_sum, m.rows, sizeof(*log_sum));
  run("cross entropy forward", m, s, {{logits, 2}});
}
void cross_entropy_backward(Matrix m, float, const Bfloat16* logits, const int32_t* labels,
                            const float* log_sum, Bfloat16* dx, cudaStream_t s) {
  require_rows("labels", labels, m.rows, sizeof(*labels));
  require_rows("log sum", log_sum, m.rows, sizeof(*log_sum));
  run("cross entropy backward", m, s, {{logits, 2}, {dx, 2}});
}
void adam_step(int64_t count, AdamSettings, const float* gradient, float* weight, float* first,
               float* second, Bfloat16* copy, cudaStream_t s) {
  // The state is read, then written: named twice.
  run("adam", {1, count}, s,
      {{gradient, 4},
       {weight, 4},
       {weight, 4},
       {first, 4},
       {first, 4},
       {second, 4},
       {second, 4},
       {copy, 2}});
}

}  // namespace pipesim::calibration::kernels
