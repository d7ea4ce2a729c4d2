// Causal attention of one layer slice on the device: forward and backward, enqueued on a stream.
//
// Two methods with one interface: `fused` runs cuDNN's attention engines through its graph
// interface; `unfused` runs strided-batched cuBLASLt matmuls and our softmax, keeps the
// full score matrix, and computes the whole square that the mask then throws away. `make_attention`
// takes the fused one where the build and the card have it, and the other for a shape that cuDNN
// has no plan for. Tensors:
// packed (batch, sequence, heads, head_dim) bf16; the unfused method reads (batch, heads, sequence,
// head_dim) and broadcasts no kv heads, so it takes equal head counts only. Errors: CublasError;
// AttentionError for a shape that the method does not take.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "validate/calibration/harness/bfloat16.h"
#include "validate/calibration/harness/cuda_resource.h"
#include "validate/calibration/harness/linear.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

class AttentionError : public LibraryError {
 public:
  using LibraryError::LibraryError;
};

struct AttentionTensors {
  const Bfloat16* q = nullptr;
  const Bfloat16* k = nullptr;
  const Bfloat16* v = nullptr;
  Bfloat16* o = nullptr;
  const Bfloat16* d_o = nullptr;  // the last four: backward only
  Bfloat16* d_q = nullptr;
  Bfloat16* d_k = nullptr;
  Bfloat16* d_v = nullptr;
};

class AttentionKernels {
 public:
  virtual ~AttentionKernels() = default;
  // Forward leaves in this object what backward needs (statistics, or the probabilities).
  virtual void forward(const AttentionTensors& tensors, cudaStream_t stream) = 0;
  virtual void backward(const AttentionTensors& tensors, cudaStream_t stream) = 0;
};

// One cuDNN handle, or the reason why there is none.
class AttentionLibrary {
 public:
  AttentionLibrary();
  ~AttentionLibrary();
  [[nodiscard]] const std::string& why_not_fused() const { return reason_; }
  [[nodiscard]] std::string version() const;  // empty when absent
  struct State;
  [[nodiscard]] State* state() const { return state_.get(); }

 private:
  std::unique_ptr<State> state_;
  std::string reason_;
};

[[nodiscard]] std::unique_ptr<AttentionKernels> make_fused_attention(
    const AttentionLibrary& library, const AttentionShape& shape);
[[nodiscard]] std::unique_ptr<AttentionKernels> make_unfused_attention(const CublasHandle& cublas,
                                                                       const AttentionShape& shape);
[[nodiscard]] std::unique_ptr<AttentionKernels> make_attention(const AttentionLibrary& library,
                                                               const CublasHandle& cublas,
                                                               const AttentionShape& shape);

}  // namespace pipesim::calibration
