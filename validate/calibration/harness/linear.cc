#include "validate/calibration/harness/linear.h"

#include <string>

namespace pipesim::calibration {
namespace {

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CublasError(std::string(what) + ": " + cublasLtGetStatusName(status));
}

template <class T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(desc, name, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

struct FreeLayout {
  void operator()(cublasLtMatrixLayout_t l) const { cublasLtMatrixLayoutDestroy(l); }
};
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, FreeLayout>;

Layout make_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t lead, int64_t batch,
                   int64_t stride) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), lead),
        "cublasLtMatrixLayoutCreate");
  Layout layout(raw);
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof(count)),
          "batch count");
    check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &stride, sizeof(stride)),
          "batch stride");
  }
  return layout;
}

struct FreeDesc {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
};
struct FreePreference {
  void operator()(cublasLtMatmulPreference_t p) const { cublasLtMatmulPreferenceDestroy(p); }
};

}  // namespace

struct Gemm::Descriptors {
  std::unique_ptr<cublasLtMatmulDescOpaque_t, FreeDesc> desc;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm{};
};

void Gemm::Destroy::operator()(Descriptors* d) const { delete d; }

CublasHandle::CublasHandle() : workspace_(kMatmulWorkspaceBytes), one_(sizeof(float)) {
  cublasLtHandle_t raw = nullptr;
  check(cublasLtCreate(&raw), "cublasLtCreate");
  handle_.reset(raw);
  const float one = 1;
  check_cuda(cudaMemcpy(one_.at(), &one, sizeof(one), cudaMemcpyHostToDevice), "cudaMemcpy");
}

GemmLayout layout_of(const MatmulSpec& spec) {
  GemmLayout layout;
  layout.precision = spec.precision;
  const bool fp8 = spec.precision == Precision::kFp8;
  // Row-major matrices are column-major ones transposed: each result below is its transpose.
  switch (spec.pass) {
    case MatmulPass::kForward:  // y^T (out x tokens) = weight (out x in) x^T
      layout.rows = spec.out;
      layout.columns = spec.tokens;
      layout.inner = spec.in;
      layout.transpose_a = true;
      layout.lead_a = layout.lead_b = spec.in;
      layout.fast_accumulation = fp8;
      break;
    case MatmulPass::kInputGradient:  // dx^T (in x tokens) = weight^T dy^T
      layout.rows = spec.in;
      layout.columns = spec.tokens;
      layout.inner = spec.out;
      layout.lead_a = spec.in;
      layout.lead_b = spec.out;
      break;
    case MatmulPass::kWeightGradient:  // dweight^T (in x out) = x^T dy
      layout.rows = spec.in;
      layout.columns = spec.out;
      layout.inner = spec.tokens;
      layout.transpose_b = true;
      layout.lead_a = spec.in;
      layout.lead_b = spec.out;
      layout.fp32_result = true;
      layout.accumulate = true;
      break;
  }
  layout.lead_d = layout.rows;
  if (fp8) {  // the hardware takes fp8 operands with the summed dimension contiguous only
    layout.transpose_a = true;
    layout.transpose_b = false;
    layout.lead_a = layout.lead_b = layout.inner;
  }
  return layout;
}

Gemm::Gemm(const CublasHandle& handle, const GemmLayout& layout)
    : handle_(handle), layout_(layout), descriptors_(new Descriptors) {
  const bool fp8 = layout.precision == Precision::kFp8;
  const cudaDataType_t operand = fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
  const cudaDataType_t result = layout.fp32_result ? CUDA_R_32F : CUDA_R_16BF;
  Descriptors& own = *descriptors_;

  cublasLtMatmulDesc_t desc = nullptr;
  check(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  own.desc.reset(desc);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, layout.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, layout.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (fp8) {
    set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, handle.one());
    set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, handle.one());
    set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(layout.fast_accumulation));
  }
  own.a = make_layout(operand, layout.transpose_a ? layout.inner : layout.rows,
                      layout.transpose_a ? layout.rows : layout.inner, layout.lead_a, layout.batch,
                      layout.stride_a);
  own.b = make_layout(operand, layout.transpose_b ? layout.columns : layout.inner,
                      layout.transpose_b ? layout.inner : layout.columns, layout.lead_b,
                      layout.batch, layout.stride_b);
  own.d = make_layout(result, layout.rows, layout.columns, layout.lead_d, layout.batch,
                      layout.stride_d);

  cublasLtMatmulPreference_t raw_preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw_preference), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, FreePreference> preference(
      raw_preference);
  check(
      cublasLtMatmulPreferenceSetAttribute(raw_preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &kMatmulWorkspaceBytes, sizeof(kMatmulWorkspaceBytes)),
      "cublasLt workspace preference");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle.get(), desc, own.a.get(), own.b.get(), own.d.get(),
                                       own.d.get(), raw_preference, 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) throw CublasError("cuBLASLt has no algorithm for the shape");
  own.algorithm = found.algo;
}

void Gemm::enqueue(const void* a, const void* b, void* d, cudaStream_t stream) const {
  const float beta = layout_.accumulate ? 1.0F : 0.0F;
  const Descriptors& own = *descriptors_;
  check(cublasLtMatmul(handle_.get(), own.desc.get(), &layout_.alpha, a, own.a.get(), b,
                       own.b.get(), &beta, d, own.d.get(), d, own.d.get(), &own.algorithm,
                       handle_.workspace(), kMatmulWorkspaceBytes, stream),
        "cublasLtMatmul");
}

void LinearMatmul::enqueue(const LinearOperands& operands, cudaStream_t stream) const {
  switch (pass_) {
    case MatmulPass::kForward:
      matmul_.enqueue(operands.weight, operands.x, operands.result, stream);
      break;
    case MatmulPass::kInputGradient:
      matmul_.enqueue(operands.weight, operands.dy, operands.result, stream);
      break;
    case MatmulPass::kWeightGradient:
      matmul_.enqueue(operands.x, operands.dy, operands.result, stream);
      break;
  }
}

}  // namespace pipesim::calibration
