// One transformer layer, and one output vocabulary layer, as real kernels on the device.
//
// F, B and W are enqueued on a stream as a training framework would run them for one microbatch on
// one GPU of a tensor-parallel group, without the group's collectives. W adds to fp32 gradients; B
// leaves what W needs. The data are random and the passes are for timing: q, k and v are the three
// consecutive regions of the QKV matmul's result. Each object owns its weights and activations.
// Errors: CudaError when memory is short, CublasError and CudnnError for shapes they refuse.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "validate/calibration/harness/attention.h"
#include "validate/calibration/harness/kernels.h"
#include "validate/calibration/harness/linear.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

// The three matmuls of one linear layer.
class Linear {
 public:
  Linear(const CublasHandle& cublas, int64_t tokens, int64_t in, int64_t out, uint64_t seed);

  void forward(const Bfloat16* x, Bfloat16* y, cudaStream_t stream) const;
  void input_gradient(const Bfloat16* dy, Bfloat16* dx, cudaStream_t stream) const;
  void weight_gradient(const Bfloat16* x, const Bfloat16* dy, cudaStream_t stream) const;

 private:
  LinearMatmul forward_, input_gradient_, weight_gradient_;
  DeviceBuffer weight_, gradient_;
};

class TransformerLayer {
 public:
  TransformerLayer(const CublasHandle& cublas, const AttentionLibrary& library,
                   const LayerSlice& slice);

  void forward(cudaStream_t stream);
  void backward_input(cudaStream_t stream);
  void backward_weight(cudaStream_t stream);

 private:
  struct NormState {
    DeviceBuffer weight, statistics, partial, gradient;
  };
  [[nodiscard]] NormState make_norm(uint64_t seed) const;
  void norm_forward(const NormState& norm, const DeviceBuffer& x, const DeviceBuffer& y,
                    cudaStream_t stream) const;
  void join_forward(const DeviceBuffer& x, const DeviceBuffer& residual, const DeviceBuffer& y,
                    const DeviceBuffer& mask, cudaStream_t stream) const;
  // Through the dropout of a branch, when there is one: the gradient that enters the branch.
  const Bfloat16* branch_gradient(const DeviceBuffer& dy, const DeviceBuffer& mask,
                                  const DeviceBuffer& scratch, cudaStream_t stream) const;
  // dx = norm_backward(d_normal) + d_residual.
  void join_backward(const NormState& norm, const DeviceBuffer& x, const DeviceBuffer& d_normal,
                     const DeviceBuffer& d_residual, const DeviceBuffer& dx,
                     cudaStream_t stream) const;
  void norm_weight_gradient(const NormState& norm, const DeviceBuffer& x, const DeviceBuffer& dy,
                            cudaStream_t stream) const;
  [[nodiscard]] AttentionTensors attention_tensors() const;
  [[nodiscard]] kernels::Matrix hidden() const { return {slice_.tokens(), slice_.shape.hidden}; }
  [[nodiscard]] kernels::Matrix inner() const {
    return {slice_.tokens(), slice_.activation_width()};
  }

  LayerSlice slice_;
  Linear qkv_, projection_, first_, second_;
  std::unique_ptr<AttentionKernels> attention_;
  NormState norm1_, norm2_;
  // Activations, then their gradients, in the order of the forward pass.
  DeviceBuffer x_, normal1_, qkv_out_, context_, projected_, middle_, normal2_, up_, activated_,
      mlp_out_, y_, mask1_, mask2_;
  DeviceBuffer d_y_, d_mlp_, d_activated_, d_up_, d_normal2_, d_middle_, d_projected_, d_context_,
      d_qkv_, d_normal1_, d_x_, d_norm_scratch_;
  const Bfloat16* d_mlp_in_ = nullptr;  // what W needs of B
  const Bfloat16* d_projected_in_ = nullptr;
};

class VocabularyLayer {
 public:
  VocabularyLayer(const CublasHandle& cublas, const LayerSlice& slice);

  void forward(cudaStream_t stream);
  void backward_input(cudaStream_t stream);
  void backward_weight(cudaStream_t stream);

 private:
  kernels::Matrix logits_size_;
  Linear output_;
  DeviceBuffer x_, logits_, d_logits_, d_x_, labels_, loss_, log_sum_;
};

}  // namespace pipesim::calibration
