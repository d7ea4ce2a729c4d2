#include "sim/runtime/blas.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim::runtime {
namespace {

// The C interface of BLAS, whose enumerations have these values.
constexpr int kRowMajor = 101;
constexpr int kPlain = 111;
constexpr int kTransposed = 112;
using Sgemm = void(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                   const float* a, int stride_a, const float* b, int stride_b, float beta, float* c,
                   int stride_c);
using Config = const char*();

struct OpenBlas {
  Sgemm* multiply = nullptr;
  Config* version = nullptr;
  std::string fault;
};

OpenBlas load() {
  // Read when the library is loaded: a thread more would compete with other devices' processes.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  OpenBlas blas;
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    blas.fault = fmt::format("matrix products need OpenBLAS (Debian: libopenblas0): {}", dlerror());
    return blas;
  }
  blas.multiply = reinterpret_cast<Sgemm*>(dlsym(library, "cblas_sgemm"));
  blas.version = reinterpret_cast<Config*>(dlsym(library, "openblas_get_config"));
  if (blas.multiply == nullptr) blas.fault = "this OpenBLAS has no cblas_sgemm";
  return blas;
}

const OpenBlas& loaded() {
  static const OpenBlas kBlas = load();
  return kBlas;
}

int turn(const MatrixView& matrix) { return matrix.turned == Turned::kYes ? kTransposed : kPlain; }

}  // namespace

void multiply(const Product& size, const MatrixView& a, const MatrixView& b, float* c, int stride) {
  if (!loaded().fault.empty()) throw InfeasibleError(loaded().fault);
  loaded().multiply(kRowMajor, turn(a), turn(b), size.m, size.n, size.k, size.scale, a.data,
                    a.stride, b.data, b.stride, size.keep, c, stride);
}

std::string blas_version() { return loaded().version == nullptr ? "" : loaded().version(); }

}  // namespace pipesim::runtime
