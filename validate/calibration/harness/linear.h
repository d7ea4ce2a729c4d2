// A matmul of a linear layer through cuBLASLt, as a training framework would call it.
//
// Operands are row-major: x is tokens x in, y is tokens x out, the weight out x in. bf16 results
// are bf16, except weight gradients, which accumulate into fp32 (as the frameworks' fused gradient
// accumulation does). fp8 operands are e4m3 with unit scales, transposed as the hardware wants them
// (the cost of transposing is not in it); fast accumulation in the forward pass only. The algorithm
// is cuBLASLt's first choice with a workspace of kMatmulWorkspaceBytes. A layout with a batch is a
// strided batch of products, for attention that is not fused. Errors: CublasError with the
// status, also when no algorithm takes the shape.
#pragma once

#include <cstddef>
#include <cublasLt.h>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "validate/calibration/harness/cuda_resource.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

inline constexpr std::size_t kMatmulWorkspaceBytes = std::size_t{32} << 20;

class CublasError : public LibraryError {
 public:
  using LibraryError::LibraryError;
};

class CublasHandle {
 public:
  CublasHandle();
  [[nodiscard]] cublasLtHandle_t get() const { return handle_.get(); }
  [[nodiscard]] void* workspace() const { return workspace_.at(); }
  // A device float that holds one: the scale of fp8 operands.
  [[nodiscard]] const float* one() const { return one_.at<float>(); }

 private:
  struct Destroy {
    void operator()(cublasLtHandle_t h) const { cublasLtDestroy(h); }
  };
  std::unique_ptr<cublasLtContext, Destroy> handle_;
  DeviceBuffer workspace_;
  DeviceBuffer one_;
};

// Column-major description of one product: D (rows x columns) = alpha op(A) op(B) + beta D.
struct GemmLayout {
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lead_a = 0, lead_b = 0, lead_d = 0;
  Precision precision = Precision::kBf16;
  bool fp32_result = false;
  bool accumulate = false;  // beta = 1
  bool fast_accumulation = false;
  float alpha = 1;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
};

[[nodiscard]] GemmLayout layout_of(const MatmulSpec& spec);

// One product, its algorithm chosen.
class Gemm {
 public:
  Gemm(const CublasHandle& handle, const GemmLayout& layout);

  void enqueue(const void* a, const void* b, void* d, cudaStream_t stream) const;

 private:
  struct Descriptors;
  struct Destroy {
    void operator()(Descriptors* d) const;
  };
  const CublasHandle& handle_;
  GemmLayout layout_;
  std::unique_ptr<Descriptors, Destroy> descriptors_;
};

// The operands of a linear layer's matmul by the names of training.
struct LinearOperands {
  const void* x = nullptr;       // fprop, wgrad
  const void* dy = nullptr;      // dgrad, wgrad
  const void* weight = nullptr;  // fprop, dgrad
  void* result = nullptr;        // y, dx or dweight
};

class LinearMatmul {
 public:
  LinearMatmul(const CublasHandle& handle, const MatmulSpec& spec)
      : pass_(spec.pass), matmul_(handle, layout_of(spec)) {}
  void enqueue(const LinearOperands& operands, cudaStream_t stream) const;

 private:
  MatmulPass pass_;
  Gemm matmul_;
};

}  // namespace pipesim::calibration
