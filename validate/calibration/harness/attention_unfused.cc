#include <cmath>

#include "validate/calibration/harness/attention.h"
#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration {
namespace {

// Row-major X (m x n) = A (m x k) B (k x n), per head: column-major that is X^T = B^T A^T, so the
// second factor comes first. `a_transposed`: A is stored as its transpose, likewise B.
GemmLayout product(const AttentionShape& shape, int64_t m, int64_t n, int64_t k, bool a_transposed,
                   bool b_transposed, float alpha) {
  GemmLayout layout;
  layout.rows = n;
  layout.columns = m;
  layout.inner = k;
  layout.transpose_a = b_transposed;
  layout.transpose_b = a_transposed;
  layout.lead_a = b_transposed ? k : n;
  layout.lead_b = a_transposed ? m : k;
  layout.lead_d = n;
  layout.batch = shape.batch * shape.heads;
  layout.stride_a = k * n;
  layout.stride_b = m * k;
  layout.stride_d = m * n;
  layout.alpha = alpha;
  return layout;
}

class UnfusedAttention final : public AttentionKernels {
 public:
  UnfusedAttention(const CublasHandle& cublas, const AttentionShape& shape)
      : shape_(shape),
        scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
        scores_(cublas, product(shape, s(), s(), d(), false, true, 1)),
        output_(cublas, product(shape, s(), d(), s(), false, false, 1)),
        d_value_(cublas, product(shape, s(), d(), s(), true, false, 1)),
        probabilities_(score_bytes()),
        d_scores_(score_bytes()) {
    if (shape.heads != shape.kv_heads) {
      throw AttentionError("unfused attention takes equal numbers of heads and kv heads");
    }
  }

  void forward(const AttentionTensors& t, cudaStream_t stream) override {
    auto* p = probabilities_.at<Bfloat16>();
    scores_.enqueue(t.k, t.q, p, stream);
    kernels::softmax_forward(score_matrix(), scale_, s(), p, p, stream);
    output_.enqueue(t.v, p, t.o, stream);
  }

  void backward(const AttentionTensors& t, cudaStream_t stream) override {
    const auto* p = probabilities_.at<Bfloat16>();
    auto* ds = d_scores_.at<Bfloat16>();
    d_value_.enqueue(t.d_o, p, t.d_v, stream);  // dV = P^T dO
    scores_.enqueue(t.v, t.d_o, ds, stream);    // dP = dO V^T
    kernels::softmax_backward(score_matrix(), scale_, p, ds, ds, stream);
    output_.enqueue(t.k, ds, t.d_q, stream);   // dQ = dS K
    d_value_.enqueue(t.q, ds, t.d_k, stream);  // dK = dS^T Q
  }

 private:
  [[nodiscard]] int64_t s() const { return shape_.sequence; }
  [[nodiscard]] int64_t d() const { return shape_.head_dim; }
  [[nodiscard]] kernels::Matrix score_matrix() const {
    return {shape_.batch * shape_.heads * s(), s()};
  }
  [[nodiscard]] std::size_t score_bytes() const {
    return static_cast<std::size_t>(score_matrix().size()) * sizeof(Bfloat16);
  }

  AttentionShape shape_;
  float scale_;
  Gemm scores_, output_, d_value_;
  DeviceBuffer probabilities_, d_scores_;
};

}  // namespace

std::unique_ptr<AttentionKernels> make_unfused_attention(const CublasHandle& cublas,
                                                         const AttentionShape& shape) {
  return std::make_unique<UnfusedAttention>(cublas, shape);
}

std::unique_ptr<AttentionKernels> make_attention(const AttentionLibrary& library,
                                                 const CublasHandle& cublas,
                                                 const AttentionShape& shape) {
  if (!library.why_not_fused().empty()) return make_unfused_attention(cublas, shape);
  try {
    return make_fused_attention(library, shape);
  } catch (const AttentionError&) {  // cuDNN has no plan for the shape
    if (shape.heads != shape.kv_heads) throw;
  }
  return make_unfused_attention(cublas, shape);
}

}  // namespace pipesim::calibration
