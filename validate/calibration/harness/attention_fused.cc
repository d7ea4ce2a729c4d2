#include <algorithm>
#include <cmath>
#include <limits>

#include "validate/calibration/harness/attention.h"

#ifdef PIPESIM_CUDNN
#include "validate/calibration/harness/attention_graph.h"
#endif

namespace pipesim::calibration {

#ifdef PIPESIM_CUDNN

struct AttentionLibrary::State {
  cudnnHandle_t handle = nullptr;
  State() { check_cudnn(cudnnCreate(&handle), "cudnnCreate"); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { cudnnDestroy(handle); }
};

namespace {

void* writable(const void* pointer) { return const_cast<void*>(pointer); }

class FusedAttention final : public AttentionKernels {
 public:
  FusedAttention(cudnnHandle_t handle, const AttentionShape& shape)
      : handle_(handle),
        scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
        forward_(attention_forward_graph(shape)),
        backward_(attention_backward_graph(shape)),
        forward_plan_(forward_.graph.build(handle)),
        backward_plan_(backward_.graph.build(handle)),
        statistics_(row_bytes(shape)),
        row_sums_(row_bytes(shape)),
        dq_accumulator_(row_bytes(shape) * static_cast<std::size_t>(shape.head_dim)),
        workspace_(static_cast<std::size_t>(std::max<int64_t>(
            {forward_plan_.workspace_bytes(), backward_plan_.workspace_bytes(), 16}))) {}

  void forward(const AttentionTensors& t, cudaStream_t stream) override {
    check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
    forward_plan_.execute(handle_,
                          {{forward_.q, writable(t.q)},
                           {forward_.k, writable(t.k)},
                           {forward_.v, writable(t.v)},
                           {forward_.o, t.o},
                           {forward_.statistics, statistics_.at()},
                           {forward_.scale, &scale_},
                           {forward_.minus_infinity, &minus_infinity_}},
                          workspace_.at());
  }

  void backward(const AttentionTensors& t, cudaStream_t stream) override {
    check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
    check_cuda(cudaMemsetAsync(dq_accumulator_.at(), 0, dq_accumulator_.bytes(), stream),
               "zeroing the dQ accumulator");
    backward_plan_.execute(handle_,
                           {{backward_.q, writable(t.q)},
                            {backward_.k, writable(t.k)},
                            {backward_.v, writable(t.v)},
                            {backward_.o, t.o},
                            {backward_.d_o, writable(t.d_o)},
                            {backward_.statistics, statistics_.at()},
                            {backward_.d_q, t.d_q},
                            {backward_.d_k, t.d_k},
                            {backward_.d_v, t.d_v},
                            {backward_.dq_accumulator, dq_accumulator_.at()},
                            {backward_.row_sums, row_sums_.at()},
                            {backward_.scale, &scale_},
                            {backward_.minus_infinity, &minus_infinity_},
                            {backward_.one, &one_}},
                           workspace_.at());
  }

 private:
  static std::size_t row_bytes(const AttentionShape& shape) {
    return static_cast<std::size_t>(shape.batch * shape.heads * shape.sequence) * sizeof(float);
  }

  cudnnHandle_t handle_;
  float scale_;
  float one_ = 1;
  float minus_infinity_ = -std::numeric_limits<float>::infinity();
  AttentionForwardGraph forward_;
  AttentionBackwardGraph backward_;
  CudnnPlan forward_plan_, backward_plan_;
  DeviceBuffer statistics_, row_sums_, dq_accumulator_, workspace_;
};

}  // namespace

AttentionLibrary::AttentionLibrary() {
  try {
    state_ = std::make_unique<State>();
  } catch (const CudnnError& error) {
    reason_ = error.what();
  }
}

std::string AttentionLibrary::version() const {
  const std::size_t version = cudnnGetVersion();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::unique_ptr<AttentionKernels> make_fused_attention(const AttentionLibrary& library,
                                                       const AttentionShape& shape) {
  if (library.state() == nullptr) throw AttentionError(library.why_not_fused());
  try {
    return std::make_unique<FusedAttention>(library.state()->handle, shape);
  } catch (const CudnnError& error) {
    throw AttentionError(error.what());
  }
}

#else

struct AttentionLibrary::State {};

AttentionLibrary::AttentionLibrary() : reason_("built without cuDNN") {}

std::string AttentionLibrary::version() const { return {}; }

std::unique_ptr<AttentionKernels> make_fused_attention(const AttentionLibrary& library,
                                                       const AttentionShape&) {
  throw AttentionError(library.why_not_fused());
}

#endif

AttentionLibrary::~AttentionLibrary() = default;

}  // namespace pipesim::calibration
