#include "validate/calibration/harness/layer.h"

namespace pipesim::calibration {
namespace {

constexpr float kWeightScale = 0.02F;  // the usual initialisation: keeps activations near one
constexpr Dropout kDropout{.seed = 12345, .probability = 0.1F};

DeviceBuffer random_bf16(int64_t count, uint64_t seed, float scale = 1.0F) {
  DeviceBuffer buffer(static_cast<std::size_t>(count) * sizeof(Bfloat16));
  kernels::fill_normal(buffer.at<Bfloat16>(), count, seed, scale, nullptr);
  return buffer;
}

DeviceBuffer zeros(std::size_t bytes) {
  DeviceBuffer buffer(bytes);
  check_cuda(cudaMemset(buffer.at(), 0, bytes), "cudaMemset");
  return buffer;
}

DeviceBuffer fp32_zeros(int64_t count) {
  return zeros(static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

Linear::Linear(const CublasHandle& cublas, int64_t tokens, int64_t in, int64_t out, uint64_t seed)
    : forward_(cublas, {MatmulPass::kForward, Precision::kBf16, tokens, in, out}),
      input_gradient_(cublas, {MatmulPass::kInputGradient, Precision::kBf16, tokens, in, out}),
      weight_gradient_(cublas, {MatmulPass::kWeightGradient, Precision::kBf16, tokens, in, out}),
      weight_(random_bf16(in * out, seed, kWeightScale)),
      gradient_(fp32_zeros(in * out)) {}

void Linear::forward(const Bfloat16* x, Bfloat16* y, cudaStream_t stream) const {
  forward_.enqueue({.x = x, .weight = weight_.at(), .result = y}, stream);
}

void Linear::input_gradient(const Bfloat16* dy, Bfloat16* dx, cudaStream_t stream) const {
  input_gradient_.enqueue({.dy = dy, .weight = weight_.at(), .result = dx}, stream);
}

void Linear::weight_gradient(const Bfloat16* x, const Bfloat16* dy, cudaStream_t stream) const {
  weight_gradient_.enqueue({.x = x, .dy = dy, .result = gradient_.at()}, stream);
}

TransformerLayer::TransformerLayer(const CublasHandle& cublas, const AttentionLibrary& library,
                                   const LayerSlice& slice)
    : slice_(slice),
      qkv_(cublas, slice.tokens(), slice.shape.hidden, slice.qkv_out(), 1),
      projection_(cublas, slice.tokens(), slice.attention_width(), slice.shape.hidden, 2),
      first_(cublas, slice.tokens(), slice.shape.hidden, slice.first_out(), 3),
      second_(cublas, slice.tokens(), slice.activation_width(), slice.shape.hidden, 4),
      attention_(make_attention(library, cublas, slice.attention())),
      norm1_(make_norm(5)),
      norm2_(make_norm(6)) {
  const int64_t tokens = slice.tokens();
  const int64_t width = slice.shape.hidden;
  uint64_t seed = 10;
  const auto make = [&](int64_t columns) { return random_bf16(tokens * columns, seed++); };
  for (DeviceBuffer* buffer :
       {&x_, &normal1_, &projected_, &middle_, &normal2_, &mlp_out_, &y_, &d_y_, &d_mlp_,
        &d_normal2_, &d_middle_, &d_projected_, &d_normal1_, &d_x_, &d_norm_scratch_}) {
    *buffer = make(width);
  }
  for (DeviceBuffer* buffer : {&qkv_out_, &d_qkv_}) *buffer = make(slice.qkv_out());
  for (DeviceBuffer* buffer : {&context_, &d_context_}) *buffer = make(slice.attention_width());
  for (DeviceBuffer* buffer : {&up_, &d_up_}) *buffer = make(slice.first_out());
  for (DeviceBuffer* buffer : {&activated_, &d_activated_}) {
    *buffer = make(slice.activation_width());
  }
  if (slice.shape.dropout) {
    for (DeviceBuffer* buffer : {&mask1_, &mask2_}) {
      *buffer = zeros(static_cast<std::size_t>(tokens * width));
    }
  }
  check_cuda(cudaDeviceSynchronize(), "filling a layer");
}

TransformerLayer::NormState TransformerLayer::make_norm(uint64_t seed) const {
  NormState norm;
  norm.weight = random_bf16(slice_.shape.hidden, seed);
  norm.statistics = zeros(static_cast<std::size_t>(slice_.tokens()) * sizeof(NormStatistics));
  norm.partial = fp32_zeros(kernels::norm_partial_rows() * slice_.shape.hidden);
  norm.gradient = fp32_zeros(slice_.shape.hidden);
  return norm;
}

void TransformerLayer::norm_forward(const NormState& norm, const DeviceBuffer& x,
                                    const DeviceBuffer& y, cudaStream_t stream) const {
  kernels::norm_forward(hidden(), {.centred = !slice_.shape.rms_norm}, x.at<Bfloat16>(),
                        norm.weight.at<Bfloat16>(), y.at<Bfloat16>(),
                        norm.statistics.at<NormStatistics>(), stream);
}

void TransformerLayer::join_forward(const DeviceBuffer& x, const DeviceBuffer& residual,
                                    const DeviceBuffer& y, const DeviceBuffer& mask,
                                    cudaStream_t stream) const {
  if (slice_.shape.dropout) {
    kernels::dropout_add_forward(hidden(), kDropout, x.at<Bfloat16>(), residual.at<Bfloat16>(),
                                 y.at<Bfloat16>(), mask.at<uint8_t>(), stream);
  } else {
    kernels::residual_add(hidden(), x.at<Bfloat16>(), residual.at<Bfloat16>(), y.at<Bfloat16>(),
                          stream);
  }
}

const Bfloat16* TransformerLayer::branch_gradient(const DeviceBuffer& dy, const DeviceBuffer& mask,
                                                  const DeviceBuffer& scratch,
                                                  cudaStream_t stream) const {
  if (!slice_.shape.dropout) return dy.at<Bfloat16>();
  kernels::dropout_backward(hidden(), kDropout, dy.at<Bfloat16>(), mask.at<uint8_t>(),
                            scratch.at<Bfloat16>(), stream);
  return scratch.at<Bfloat16>();
}

void TransformerLayer::join_backward(const NormState& norm, const DeviceBuffer& x,
                                     const DeviceBuffer& d_normal, const DeviceBuffer& d_residual,
                                     const DeviceBuffer& dx, cudaStream_t stream) const {
  kernels::norm_backward(hidden(), {.centred = !slice_.shape.rms_norm}, x.at<Bfloat16>(),
                         norm.weight.at<Bfloat16>(), d_normal.at<Bfloat16>(),
                         norm.statistics.at<NormStatistics>(), d_norm_scratch_.at<Bfloat16>(),
                         stream);
  kernels::residual_add(hidden(), d_norm_scratch_.at<Bfloat16>(), d_residual.at<Bfloat16>(),
                        dx.at<Bfloat16>(), stream);
}

void TransformerLayer::norm_weight_gradient(const NormState& norm, const DeviceBuffer& x,
                                            const DeviceBuffer& dy, cudaStream_t stream) const {
  kernels::norm_weight_gradient(hidden(), x.at<Bfloat16>(), dy.at<Bfloat16>(),
                                norm.statistics.at<NormStatistics>(), norm.partial.at<float>(),
                                norm.gradient.at<float>(), stream);
}

AttentionTensors TransformerLayer::attention_tensors() const {
  const int64_t q = slice_.tokens() * slice_.attention_width();
  const int64_t kv = (slice_.tokens() * slice_.qkv_out() - q) / 2;
  const auto* qkv = qkv_out_.at<Bfloat16>();
  auto* d_qkv = d_qkv_.at<Bfloat16>();
  return {.q = qkv,
          .k = qkv + q,
          .v = qkv + q + kv,
          .o = context_.at<Bfloat16>(),
          .d_o = d_context_.at<Bfloat16>(),
          .d_q = d_qkv,
          .d_k = d_qkv + q,
          .d_v = d_qkv + q + kv};
}

void TransformerLayer::forward(cudaStream_t stream) {
  norm_forward(norm1_, x_, normal1_, stream);
  qkv_.forward(normal1_.at<Bfloat16>(), qkv_out_.at<Bfloat16>(), stream);
  attention_->forward(attention_tensors(), stream);
  projection_.forward(context_.at<Bfloat16>(), projected_.at<Bfloat16>(), stream);
  join_forward(projected_, x_, middle_, mask1_, stream);
  norm_forward(norm2_, middle_, normal2_, stream);
  first_.forward(normal2_.at<Bfloat16>(), up_.at<Bfloat16>(), stream);
  if (slice_.shape.gated) {
    kernels::swiglu_forward(inner(), up_.at<Bfloat16>(), activated_.at<Bfloat16>(), stream);
  } else {
    kernels::gelu_forward(inner(), up_.at<Bfloat16>(), activated_.at<Bfloat16>(), stream);
  }
  second_.forward(activated_.at<Bfloat16>(), mlp_out_.at<Bfloat16>(), stream);
  join_forward(mlp_out_, middle_, y_, mask2_, stream);
}

void TransformerLayer::backward_input(cudaStream_t stream) {
  d_mlp_in_ = branch_gradient(d_y_, mask2_, d_mlp_, stream);
  second_.input_gradient(d_mlp_in_, d_activated_.at<Bfloat16>(), stream);
  if (slice_.shape.gated) {
    kernels::swiglu_backward(inner(), up_.at<Bfloat16>(), d_activated_.at<Bfloat16>(),
                             d_up_.at<Bfloat16>(), stream);
  } else {
    kernels::gelu_backward(inner(), up_.at<Bfloat16>(), d_activated_.at<Bfloat16>(),
                           d_up_.at<Bfloat16>(), stream);
  }
  first_.input_gradient(d_up_.at<Bfloat16>(), d_normal2_.at<Bfloat16>(), stream);
  join_backward(norm2_, middle_, d_normal2_, d_y_, d_middle_, stream);
  d_projected_in_ = branch_gradient(d_middle_, mask1_, d_projected_, stream);
  projection_.input_gradient(d_projected_in_, d_context_.at<Bfloat16>(), stream);
  attention_->backward(attention_tensors(), stream);
  qkv_.input_gradient(d_qkv_.at<Bfloat16>(), d_normal1_.at<Bfloat16>(), stream);
  join_backward(norm1_, x_, d_normal1_, d_middle_, d_x_, stream);
}

void TransformerLayer::backward_weight(cudaStream_t stream) {
  second_.weight_gradient(activated_.at<Bfloat16>(), d_mlp_in_, stream);
  first_.weight_gradient(normal2_.at<Bfloat16>(), d_up_.at<Bfloat16>(), stream);
  norm_weight_gradient(norm2_, middle_, d_normal2_, stream);
  projection_.weight_gradient(context_.at<Bfloat16>(), d_projected_in_, stream);
  qkv_.weight_gradient(normal1_.at<Bfloat16>(), d_qkv_.at<Bfloat16>(), stream);
  norm_weight_gradient(norm1_, x_, d_normal1_, stream);
}

VocabularyLayer::VocabularyLayer(const CublasHandle& cublas, const LayerSlice& slice)
    : logits_size_{slice.tokens(), slice.vocabulary_out()},
      output_(cublas, slice.tokens(), slice.shape.hidden, slice.vocabulary_out(), 1),
      x_(random_bf16(slice.tokens() * slice.shape.hidden, 2)),
      logits_(random_bf16(logits_size_.size(), 3)),
      d_logits_(random_bf16(logits_size_.size(), 4)),
      d_x_(random_bf16(slice.tokens() * slice.shape.hidden, 5)),
      labels_(static_cast<std::size_t>(slice.tokens()) * sizeof(int32_t)),
      loss_(fp32_zeros(slice.tokens())),
      log_sum_(fp32_zeros(slice.tokens())) {
  kernels::fill_labels(labels_.at<int32_t>(), slice.tokens(),
                       static_cast<int32_t>(logits_size_.columns), 6, nullptr);
  check_cuda(cudaDeviceSynchronize(), "filling a vocabulary layer");
}

void VocabularyLayer::forward(cudaStream_t stream) {
  output_.forward(x_.at<Bfloat16>(), logits_.at<Bfloat16>(), stream);
  kernels::cross_entropy_forward(logits_size_, logits_.at<Bfloat16>(), labels_.at<int32_t>(),
                                 loss_.at<float>(), log_sum_.at<float>(), stream);
}

void VocabularyLayer::backward_input(cudaStream_t stream) {
  kernels::cross_entropy_backward(logits_size_, 1.0F / static_cast<float>(logits_size_.rows),
                                  logits_.at<Bfloat16>(), labels_.at<int32_t>(),
                                  log_sum_.at<float>(), d_logits_.at<Bfloat16>(), stream);
  output_.input_gradient(d_logits_.at<Bfloat16>(), d_x_.at<Bfloat16>(), stream);
}

void VocabularyLayer::backward_weight(cudaStream_t stream) {
  output_.weight_gradient(x_.at<Bfloat16>(), d_logits_.at<Bfloat16>(), stream);
}

}  // namespace pipesim::calibration
