#include <array>
#include <memory>

#include "validate/calibration/harness/kernels.h"
#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

using kernels::Matrix;

constexpr Dropout kDropout{.seed = 2024, .probability = 0.1F};
constexpr std::size_t kAlignment = 256;
constexpr int kMaximumOperands = 3;

// Buffers that one launch of a kernel reads and writes, taken from the arenas.
struct Operands {
  std::array<const Bfloat16*, kMaximumOperands> in{};
  Bfloat16* out = nullptr;
  Bfloat16* more = nullptr;  // a second output, or the mask
};

// State that a kernel needs beside its matrices, owned by the work.
struct Side {
  explicit Side(int64_t rows, int64_t columns)
      : statistics(static_cast<std::size_t>(rows) * sizeof(NormStatistics)),
        labels(static_cast<std::size_t>(rows) * sizeof(int32_t)),
        loss(static_cast<std::size_t>(rows) * sizeof(float)),
        log_sum(static_cast<std::size_t>(rows) * sizeof(float)),
        weight(static_cast<std::size_t>(columns) * sizeof(Bfloat16)),
        partial(static_cast<std::size_t>(kernels::norm_partial_rows() * columns) * sizeof(float)),
        gradient(static_cast<std::size_t>(columns) * sizeof(float)) {
    kernels::fill_normal(statistics.at<float>(), 2 * rows, 1, 0.5F, nullptr);
    kernels::fill_labels(labels.at<int32_t>(), rows, static_cast<int32_t>(columns), 2, nullptr);
    kernels::fill_normal(log_sum.at<float>(), rows, 3, 1.0F, nullptr);
    kernels::fill_normal(weight.at<Bfloat16>(), columns, 4, 1.0F, nullptr);
    check_cuda(cudaDeviceSynchronize(), "filling a kernel's operands");
  }

  DeviceBuffer statistics, labels, loss, log_sum, weight, partial, gradient;
};

void launch_norm(Kernel kernel, Matrix m, const Operands& o, const Side& s, cudaStream_t stream) {
  auto* statistics = s.statistics.at<NormStatistics>();
  const auto* weight = s.weight.at<Bfloat16>();
  const bool centred = kernel == Kernel::kLayerNormForward || kernel == Kernel::kLayerNormBackward;
  if (kernel == Kernel::kNormWeightGradient) {
    kernels::norm_weight_gradient(m, o.in[0], o.in[1], statistics, s.partial.at<float>(),
                                  s.gradient.at<float>(), stream);
  } else if (kernel == Kernel::kLayerNormForward || kernel == Kernel::kRmsNormForward) {
    kernels::norm_forward(m, {.centred = centred}, o.in[0], weight, o.out, statistics, stream);
  } else {
    kernels::norm_backward(m, {.centred = centred}, o.in[0], weight, o.in[1], statistics, o.out,
                           stream);
  }
}

void launch(Kernel kernel, Matrix m, const Operands& o, const Side& s, cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kCopy:
      return kernels::copy(m, o.in[0], o.out, stream);
    case Kernel::kResidualAdd:
      return kernels::residual_add(m, o.in[0], o.in[1], o.out, stream);
    case Kernel::kDropoutAddForward:
      return kernels::dropout_add_forward(m, kDropout, o.in[0], o.in[1], o.out,
                                          reinterpret_cast<uint8_t*>(o.more), stream);
    case Kernel::kDropoutBackward:
      return kernels::dropout_backward(m, kDropout, o.in[0],
                                       reinterpret_cast<const uint8_t*>(o.in[1]), o.out, stream);
    case Kernel::kGeluForward:
      return kernels::gelu_forward(m, o.in[0], o.out, stream);
    case Kernel::kGeluBackward:
      return kernels::gelu_backward(m, o.in[0], o.in[1], o.out, stream);
    case Kernel::kSwigluForward:  // its input is twice as wide: the first two regions
      return kernels::swiglu_forward(m, o.in[0], o.out, stream);
    case Kernel::kSwigluBackward:
      return kernels::swiglu_backward(m, o.in[0], o.in[2], o.out, stream);
    case Kernel::kSoftmaxForward:
      return kernels::softmax_forward(m, 1.0F, 0, o.in[0], o.out, stream);
    case Kernel::kSoftmaxBackward:
      return kernels::softmax_backward(m, 1.0F, o.in[0], o.in[1], o.out, stream);
    case Kernel::kCrossEntropyForward:
      return kernels::cross_entropy_forward(m, o.in[0], s.labels.at<int32_t>(), s.loss.at<float>(),
                                            s.log_sum.at<float>(), stream);
    case Kernel::kCrossEntropyBackward:
      return kernels::cross_entropy_backward(m, 1.0F, o.in[0], s.labels.at<int32_t>(),
                                             s.log_sum.at<float>(), o.out, stream);
    default:
      return launch_norm(kernel, m, o, s, stream);
  }
}

int operands_read(Kernel kernel) {
  switch (kernel) {
    case Kernel::kCopy:
    case Kernel::kRmsNormForward:
    case Kernel::kLayerNormForward:
    case Kernel::kGeluForward:
    case Kernel::kSoftmaxForward:
    case Kernel::kCrossEntropyForward:
    case Kernel::kCrossEntropyBackward:
      return 1;
    case Kernel::kSwigluBackward:
      return 3;
    default:
      return 2;
  }
}

Work adam_work(const KernelSpec& spec) {
  const int64_t count = spec.rows * spec.columns;
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  struct State {
    DeviceBuffer gradient, weight, first, second, copy;
  };
  auto state = std::make_shared<State>();
  for (DeviceBuffer* buffer : {&state->gradient, &state->weight, &state->first, &state->second}) {
    *buffer = DeviceBuffer(bytes);
    kernels::fill_normal(buffer->at<float>(), count, 7, 1.0F, nullptr);
  }
  state->copy = DeviceBuffer(bytes / 2);
  // A second moment is never negative.
  check_cuda(cudaMemset(state->second.at(), 0, bytes), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "filling Adam's state");
  return [=](cudaStream_t stream, int) {
    kernels::adam_step(count, AdamSettings{}, state->gradient.at<float>(),
                       state->weight.at<float>(), state->first.at<float>(),
                       state->second.at<float>(), state->copy.at<Bfloat16>(), stream);
  };
}

Work kernel_work(Session& session, const KernelSpec& spec) {
  if (spec.kernel == Kernel::kAdamStep) return adam_work(spec);
  const Matrix m{spec.rows, spec.columns};
  const std::size_t matrix =
      (static_cast<std::size_t>(m.size()) * sizeof(Bfloat16) + kAlignment - 1) / kAlignment *
      kAlignment;
  const auto reads = static_cast<std::size_t>(operands_read(spec.kernel));
  constexpr std::size_t kWrites = 2;
  const Arena& operands = session.operands(Precision::kBf16);
  const Arena& results = session.scratch();
  const auto l2 = static_cast<std::size_t>(session.card.facts().l2_bytes);
  const Rotation in(operands.bytes(), reads * matrix, l2);
  const Rotation out(results.bytes(), kWrites * matrix, l2);
  auto side = std::make_shared<Side>(spec.rows, spec.columns);
  return [=, &operands, &results](cudaStream_t stream, int run) {
    Operands bound;
    for (std::size_t i = 0; i < reads; ++i) {
      bound.in[i] = operands.at<Bfloat16>(in.offset(run) + i * matrix);
    }
    bound.out = results.at<Bfloat16>(out.offset(run));
    bound.more = results.at<Bfloat16>(out.offset(run) + matrix);
    launch(spec.kernel, m, bound, *side, stream);
  };
}

}  // namespace

void measure_kernels(Session& session) {
  session.burn_in();
  for (const KernelSpec& spec : session.plan.kernels) {
    session.attempt(point_of(spec), [&](Point& point) {
      session.timer.measure(point, kernel_work(session, spec));
    });
  }
}

}  // namespace pipesim::calibration
