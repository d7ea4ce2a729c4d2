// Matrix products of one thread, by OpenBLAS, which is loaded when first asked for: only processes
// that compute need it.
#pragma once

#include <string>

namespace pipesim::runtime {

enum class Turned : bool { kNo, kYes };

// A matrix as it lies in memory, row after row, `stride` elements from one to the next.
struct MatrixView {
  const float* data = nullptr;
  int stride = 0;
  Turned turned = Turned::kNo;
};

// c (m x n, rows `stride` apart) = scale * a (m x k) * b (k x n) + keep * c. InfeasibleError where
// there is no OpenBLAS.
struct Product {
  int m = 0, n = 0, k = 0;
  float scale = 1;
  float keep = 0;
};
void multiply(const Product& size, const MatrixView& a, const MatrixView& b, float* c, int stride);

// OpenBLAS's own version; empty where there is none.
std::string blas_version();

}  // namespace pipesim::runtime
