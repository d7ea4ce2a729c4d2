#include <cstdint>
#include <cstring>
#include <cublasLt.h>

#include "tests/calibration/harness/virtual_device.h"

namespace pipesim::calibration::virtual_device {
namespace {

struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, lead;
  int32_t batch = 1;
  int64_t stride = 0;

  [[nodiscard]] std::size_t element() const {
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16BF ? 2 : 1;
  }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>((batch - 1) * stride + (columns - 1) * lead + rows) * element();
  }
};

struct Product {
  int32_t transpose_a = 0, transpose_b = 0;
};

Layout& layout(cublasLtMatrixLayout_t l) { return *reinterpret_cast<Layout*>(l); }
Product& product(cublasLtMatmulDesc_t d) { return *reinterpret_cast<Product*>(d); }

}  // namespace
}  // namespace pipesim::calibration::virtual_device

namespace vd = pipesim::calibration::virtual_device;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  return *h = reinterpret_cast<cublasLtHandle_t>(new int), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
  return delete reinterpret_cast<int*>(h), CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "virtual"; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t,
                                        cudaDataType_t) {
  *d = reinterpret_cast<cublasLtMatmulDesc_t>(new vd::Product);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  return delete &vd::product(d), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t) {
  const auto read = [&](int32_t& to) { std::memcpy(&to, value, sizeof(to)); };
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) read(vd::product(d).transpose_a);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) read(vd::product(d).transpose_b);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t lead) {
  if (rows == 0 || columns == 0 || lead < static_cast<int64_t>(rows)) {
    vd::fail("a matrix layout whose columns overlap");
  }
  *l = reinterpret_cast<cublasLtMatrixLayout_t>(
      new vd::Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), lead});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  return delete &vd::layout(l), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, size_t bytes) {
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) std::memcpy(&vd::layout(l).batch, value, bytes);
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
    std::memcpy(&vd::layout(l).stride, value, bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  return *p = reinterpret_cast<cublasLtMatmulPreference_t>(new int), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return delete reinterpret_cast<int*>(p), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t*, int* count) {
  return *count = 1, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void*,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void*, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  const vd::Layout& la = vd::layout(a_layout);
  const vd::Layout& lb = vd::layout(b_layout);
  const vd::Layout& ld = vd::layout(d_layout);
  const bool ta = vd::product(desc).transpose_a != 0, tb = vd::product(desc).transpose_b != 0;
  const int64_t inner = ta ? la.rows : la.columns;
  if ((ta ? la.columns : la.rows) != ld.rows || (tb ? lb.rows : lb.columns) != ld.columns ||
      (tb ? lb.columns : lb.rows) != inner) {
    vd::fail("a product of matrices that do not fit together");
  }
  vd::require_region("first factor", a, la.bytes());
  vd::require_region("second factor", b, lb.bytes());
  vd::require_region("product", d, ld.bytes());
  const double flops =
      2.0 * static_cast<double>(ld.rows * ld.columns) * static_cast<double>(inner) * ld.batch;
  const double rate = vd::kMatmulFlopsPerUs * (la.element() == 1 ? 2 : 1);
  vd::advance(stream, vd::kLaunchUs + flops / rate);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
