// Every kernel, matmul and attention on the device against a CPU reference in double precision.
// Without a GPU each test is skipped, and says so.
#include <functional>
#include <gtest/gtest.h>

#include "tests/calibration/reference.h"
#include "validate/calibration/harness/attention.h"
#include "validate/calibration/harness/card.h"
#include "validate/calibration/harness/kernels.h"
#include "validate/calibration/harness/linear.h"
#include "validate/calibration/harness/timer.h"

namespace pipesim::calibration {
namespace {

using kernels::Matrix;
using reference::distance;
using reference::kBf16Tolerance;
using reference::kFp32Tolerance;
using reference::random_bf16;
using reference::values;
using reference::Values;

template <class T>
DeviceBuffer upload(const std::vector<T>& host) {
  DeviceBuffer device(host.size() * sizeof(T));
  check_cuda(cudaMemcpy(device.at(), host.data(), device.bytes(), cudaMemcpyHostToDevice),
             "upload");
  return device;
}

template <class T>
std::vector<T> download(const DeviceBuffer& device, std::size_t count) {
  std::vector<T> host(count);
  check_cuda(cudaDeviceSynchronize(), "a kernel failed");
  check_cuda(cudaMemcpy(host.data(), device.at(), count * sizeof(T), cudaMemcpyDeviceToHost),
             "download");
  return host;
}

// All bits set: NaN in every type, so that an element that nobody writes shows.
DeviceBuffer poisoned(std::size_t bytes) {
  DeviceBuffer device(bytes);
  check_cuda(cudaMemset(device.at(), 0xff, bytes), "cudaMemset");
  return device;
}

Values wide(const std::vector<float>& in) { return {in.begin(), in.end()}; }

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_device(); !reason.empty()) {
      GTEST_SKIP() << "needs a GPU: " << reason;
    }
  }

  static constexpr int64_t kRows = 37;
  static constexpr int64_t kColumns = 1032;  // not a multiple of a block's threads
  static constexpr Matrix kMatrix{kRows, kColumns};
  static constexpr std::size_t kSize = kRows * kColumns;

  std::vector<Bfloat16> x_ = random_bf16(kSize, 1);
  std::vector<Bfloat16> dy_ = random_bf16(kSize, 2);
};

TEST_F(Gpu, NormsAgreeWithTheCpu) {
  const auto weight = random_bf16(kColumns, 3);
  const DeviceBuffer x = upload(x_), dy = upload(dy_), w = upload(weight);
  for (const bool centred : {true, false}) {
    const kernels::Norm norm{.centred = centred};
    const DeviceBuffer y = poisoned(2 * kSize), dx = poisoned(2 * kSize);
    const DeviceBuffer saved = poisoned(kRows * sizeof(NormStatistics));
    const DeviceBuffer partial =
        poisoned(static_cast<std::size_t>(kernels::norm_partial_rows() * kColumns) * 4);
    const DeviceBuffer gradient = poisoned(kColumns * 4);
    kernels::norm_forward(kMatrix, norm, x.at<Bfloat16>(), w.at<Bfloat16>(), y.at<Bfloat16>(),
                          saved.at<NormStatistics>(), nullptr);
    kernels::norm_backward(kMatrix, norm, x.at<Bfloat16>(), w.at<Bfloat16>(), dy.at<Bfloat16>(),
                           saved.at<NormStatistics>(), dx.at<Bfloat16>(), nullptr);
    kernels::norm_weight_gradient(kMatrix, x.at<Bfloat16>(), dy.at<Bfloat16>(),
                                  saved.at<NormStatistics>(), partial.at<float>(),
                                  gradient.at<float>(), nullptr);
    const auto expected =
        reference::norm_forward(values(x_), values(weight), centred, norm.epsilon);
    EXPECT_LT(distance(values(download<Bfloat16>(y, kSize)), expected.y), kBf16Tolerance);
    EXPECT_LT(distance(values(download<Bfloat16>(dx, kSize)),
                       reference::norm_backward(values(x_), values(weight), values(dy_), centred,
                                                norm.epsilon)),
              kBf16Tolerance);
    EXPECT_LT(distance(wide(download<float>(gradient, kColumns)),
                       reference::norm_weight_gradient(values(x_), values(dy_), expected.mean,
                                                       expected.inverse, kColumns)),
              kFp32Tolerance);
  }
}

TEST_F(Gpu, SoftmaxAgreesWithTheCpu) {
  constexpr float kScale = 0.5F;
  const DeviceBuffer x = upload(x_), dy = upload(dy_);
  for (const int64_t period : {0, 8}) {
    const DeviceBuffer y = poisoned(2 * kSize), dx = poisoned(2 * kSize);
    kernels::softmax_forward(kMatrix, kScale, period, x.at<Bfloat16>(), y.at<Bfloat16>(), nullptr);
    kernels::softmax_backward(kMatrix, kScale, y.at<Bfloat16>(), dy.at<Bfloat16>(),
                              dx.at<Bfloat16>(), nullptr);
    const Values forward = values(download<Bfloat16>(y, kSize));
    EXPECT_LT(distance(forward, reference::softmax_forward(values(x_), kColumns, kScale,
                                                           static_cast<std::size_t>(period))),
              kBf16Tolerance);
    EXPECT_LT(distance(values(download<Bfloat16>(dx, kSize)),
                       reference::softmax_backward(forward, values(dy_), kColumns, kScale)),
              kBf16Tolerance);
  }
}

TEST_F(Gpu, CrossEntropyAgreesWithTheCpu) {
  std::vector<int32_t> labels;
  for (int32_t row = 0; row < kRows; ++row) labels.push_back(row * 27);
  const DeviceBuffer x = upload(x_), label = upload(labels), dx = poisoned(2 * kSize);
  const DeviceBuffer loss = poisoned(kRows * 4), log_sum = poisoned(kRows * 4);
  kernels::cross_entropy_forward(kMatrix, x.at<Bfloat16>(), label.at<int32_t>(), loss.at<float>(),
                                 log_sum.at<float>(), nullptr);
  kernels::cross_entropy_backward(kMatrix, 2.0F, x.at<Bfloat16>(), label.at<int32_t>(),
                                  log_sum.at<float>(), dx.at<Bfloat16>(), nullptr);
  Values gradient = reference::softmax_forward(values(x_), kColumns, 1, 0);
  Values expected_loss;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::size_t hit = row * kColumns + static_cast<std::size_t>(labels[row]);
    expected_loss.push_back(-std::log(gradient[hit]));
    gradient[hit] -= 1;
  }
  for (double& g : gradient) g *= 2;
  EXPECT_LT(distance(wide(download<float>(loss, kRows)), expected_loss), kFp32Tolerance);
  EXPECT_LT(distance(values(download<Bfloat16>(dx, kSize)), gradient), kBf16Tolerance);
}

// Runs one element-wise kernel and compares every element with `expected(index)`.
void expect_elements(std::size_t count, const std::function<void(Bfloat16*)>& run,
                     const std::function<double(std::size_t)>& expected) {
  const DeviceBuffer out = poisoned(2 * count);
  run(out.at<Bfloat16>());
  Values wanted;
  for (std::size_t i = 0; i < count; ++i) wanted.push_back(expected(i));
  EXPECT_LT(distance(values(download<Bfloat16>(out, count)), wanted), kBf16Tolerance);
}

TEST_F(Gpu, ElementwiseKernelsAgreeWithTheCpu) {
  const DeviceBuffer x = upload(x_), dy = upload(dy_);
  const Values xs = values(x_), ds = values(dy_);
  const auto* in = x.at<Bfloat16>();
  const auto* gradient = dy.at<Bfloat16>();
  expect_elements(
      kSize, [&](Bfloat16* out) { kernels::copy(kMatrix, in, out, nullptr); },
      [&](std::size_t i) { return xs[i]; });
  expect_elements(
      kSize, [&](Bfloat16* out) { kernels::residual_add(kMatrix, in, gradient, out, nullptr); },
      [&](std::size_t i) { return xs[i] + ds[i]; });
  expect_elements(
      kSize, [&](Bfloat16* out) { kernels::gelu_forward(kMatrix, in, out, nullptr); },
      [&](std::size_t i) { return reference::gelu(xs[i]); });
  expect_elements(
      kSize, [&](Bfloat16* out) { kernels::gelu_backward(kMatrix, in, gradient, out, nullptr); },
      [&](std::size_t i) { return ds[i] * reference::slope(reference::gelu, xs[i]); });
}

TEST_F(Gpu, SwigluReadsTheGateAndTheOtherHalfOfEachRow) {
  const auto both = random_bf16(2 * kSize, 4);
  const DeviceBuffer in = upload(both), dy = upload(dy_);
  const Values b = values(both), ds = values(dy_);
  const auto gate = [&](std::size_t i) { return b[i / kColumns * 2 * kColumns + i % kColumns]; };
  const auto up = [&](std::size_t i) {
    return b[i / kColumns * 2 * kColumns + kColumns + i % kColumns];
  };
  expect_elements(
      kSize,
      [&](Bfloat16* out) { kernels::swiglu_forward(kMatrix, in.at<Bfloat16>(), out, nullptr); },
      [&](std::size_t i) { return reference::silu(gate(i)) * up(i); });
  expect_elements(
      2 * kSize,
      [&](Bfloat16* out) {
        kernels::swiglu_backward(kMatrix, in.at<Bfloat16>(), dy.at<Bfloat16>(), out, nullptr);
      },
      [&](std::size_t i) {
        const std::size_t column = i % (2 * kColumns);
        const std::size_t at = i / (2 * kColumns) * kColumns + column % kColumns;
        return column < kColumns ? ds[at] * up(at) * reference::slope(reference::silu, gate(at))
                                 : ds[at] * reference::silu(gate(at));
      });
}

TEST_F(Gpu, DropoutIsTheHostsDropout) {
  const Dropout dropout{.seed = 99, .probability = 0.3F};
  const DeviceBuffer x = upload(x_), residual = upload(dy_), mask = poisoned(kSize);
  const Values xs = values(x_), rs = values(dy_);
  const auto kept = [&](std::size_t i) { return dropout.keeps(i) ? 1.0 / 0.7 : 0.0; };
  expect_elements(
      kSize,
      [&](Bfloat16* out) {
        kernels::dropout_add_forward(kMatrix, dropout, x.at<Bfloat16>(), residual.at<Bfloat16>(),
                                     out, mask.at<uint8_t>(), nullptr);
      },
      [&](std::size_t i) { return xs[i] * kept(i) + rs[i]; });
  expect_elements(
      kSize,
      [&](Bfloat16* out) {
        kernels::dropout_backward(kMatrix, dropout, x.at<Bfloat16>(), mask.at<uint8_t>(), out,
                                  nullptr);
      },
      [&](std::size_t i) { return xs[i] * kept(i); });
}

TEST_F(Gpu, AdamIsTheHostsAdam) {
  const std::size_t count = 1024;
  std::vector<float> gradient, weight, first(count, 0.1F), second(count, 0.2F);
  for (const Bfloat16 v : random_bf16(count, 5)) gradient.push_back(v.value());
  for (const Bfloat16 v : random_bf16(count, 6)) weight.push_back(v.value());
  const DeviceBuffer g = upload(gradient), w = upload(weight), m = upload(first),
                     v = upload(second), copy = poisoned(2 * count);
  const AdamSettings settings{.rate = 0.01F};
  kernels::adam_step(count, settings, g.at<float>(), w.at<float>(), m.at<float>(), v.at<float>(),
                     copy.at<Bfloat16>(), nullptr);
  Values weights, firsts, seconds;
  for (std::size_t i = 0; i < count; ++i) {
    const AdamState s = adam_step(settings, {weight[i], first[i], second[i]}, gradient[i]);
    weights.push_back(s.weight);
    firsts.push_back(s.first);
    seconds.push_back(s.second);
  }
  EXPECT_LT(distance(wide(download<float>(w, count)), weights), kFp32Tolerance);
  EXPECT_LT(distance(wide(download<float>(m, count)), firsts), kFp32Tolerance);
  EXPECT_LT(distance(wide(download<float>(v, count)), seconds), kFp32Tolerance);
  EXPECT_LT(distance(values(download<Bfloat16>(copy, count)), weights), kBf16Tolerance);
}

TEST_F(Gpu, FillsAreNormalAndLabelsStayInRange) {
  constexpr std::size_t kCount = 100000;
  const DeviceBuffer bf16 = poisoned(2 * kCount), labels = poisoned(4 * kCount);
  kernels::fill_normal(bf16.at<Bfloat16>(), kCount, 1, 2.0F, nullptr);
  kernels::fill_labels(labels.at<int32_t>(), kCount, 100, 1, nullptr);
  double mean = 0, square = 0;
  for (const double v : values(download<Bfloat16>(bf16, kCount))) {
    mean += v / kCount;
    square += v * v / kCount;
  }
  EXPECT_NEAR(mean, 0, 0.04);
  EXPECT_NEAR(square, 4, 0.12);
  std::vector<int> seen(100);
  for (const int32_t label : download<int32_t>(labels, kCount)) {
    ++seen.at(static_cast<std::size_t>(label));
  }
  EXPECT_GT(*std::ranges::min_element(seen), 0);
}

TEST_F(Gpu, TheThreeMatmulsOfALinearLayerAgreeWithTheCpu) {
  constexpr std::size_t kTokens = 48, kIn = 64, kOut = 80;
  const auto x = random_bf16(kTokens * kIn, 1), w = random_bf16(kOut * kIn, 2),
             dy = random_bf16(kTokens * kOut, 3);
  const Values xs = values(x), ws = values(w), ds = values(dy);
  const DeviceBuffer dx = upload(x), dw = upload(w), ddy = upload(dy);
  const CublasHandle cublas;
  const auto spec = [](MatmulPass pass) {
    return MatmulSpec{pass, Precision::kBf16, kTokens, kIn, kOut};
  };
  expect_elements(
      kTokens * kOut,
      [&](Bfloat16* out) {
        LinearMatmul(cublas, spec(MatmulPass::kForward))
            .enqueue({.x = dx.at(), .weight = dw.at(), .result = out}, nullptr);
      },
      [&](std::size_t i) {
        double sum = 0;
        for (std::size_t k = 0; k < kIn; ++k)
          sum += xs[i / kOut * kIn + k] * ws[i % kOut * kIn + k];
        return sum;
      });
  expect_elements(
      kTokens * kIn,
      [&](Bfloat16* out) {
        LinearMatmul(cublas, spec(MatmulPass::kInputGradient))
            .enqueue({.dy = ddy.at(), .weight = dw.at(), .result = out}, nullptr);
      },
      [&](std::size_t i) {
        double sum = 0;
        for (std::size_t k = 0; k < kOut; ++k)
          sum += ds[i / kIn * kOut + k] * ws[k * kIn + i % kIn];
        return sum;
      });
  // The weight gradient adds to what is there.
  const std::vector<float> ones(kOut * kIn, 1.0F);
  const DeviceBuffer gradient = upload(ones);
  LinearMatmul(cublas, spec(MatmulPass::kWeightGradient))
      .enqueue({.x = dx.at(), .dy = ddy.at(), .result = gradient.at()}, nullptr);
  Values expected(kOut * kIn, 1.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      expected[i] += ds[t * kOut + i / kIn] * xs[t * kIn + i % kIn];
    }
  }
  EXPECT_LT(distance(wide(download<float>(gradient, kOut * kIn)), expected), kFp32Tolerance);
}

// With tensors in the layout that the method reads.
void expect_attention(AttentionKernels& attention, const AttentionShape& shape,
                      reference::HeadLayout layout) {
  SCOPED_TRACE(point_of(shape, false).key());
  const auto whole = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  const reference::HeadTensor heads{layout, whole(shape.batch), whole(shape.heads),
                                    whole(shape.sequence), whole(shape.head_dim)};
  const std::size_t size = heads.size();
  const std::size_t kv_size = size / heads.heads * whole(shape.kv_heads);
  const auto q = random_bf16(size, 1), k = random_bf16(kv_size, 2), v = random_bf16(kv_size, 3),
             d_o = random_bf16(size, 4);
  const DeviceBuffer dq = upload(q), dk = upload(k), dv = upload(v), ddo = upload(d_o);
  const DeviceBuffer o = poisoned(2 * size), gq = poisoned(2 * size), gk = poisoned(2 * kv_size),
                     gv = poisoned(2 * kv_size);
  const AttentionTensors tensors{.q = dq.at<Bfloat16>(),
                                 .k = dk.at<Bfloat16>(),
                                 .v = dv.at<Bfloat16>(),
                                 .o = o.at<Bfloat16>(),
                                 .d_o = ddo.at<Bfloat16>(),
                                 .d_q = gq.at<Bfloat16>(),
                                 .d_k = gk.at<Bfloat16>(),
                                 .d_v = gv.at<Bfloat16>()};
  attention.forward(tensors, nullptr);
  attention.backward(tensors, nullptr);
  const auto expected = reference::attention(heads, whole(shape.kv_heads), values(q), values(k),
                                             values(v), values(d_o));
  // The probabilities pass through bf16 between the two products.
  constexpr double kTolerance = 1e-2;
  EXPECT_LT(distance(values(download<Bfloat16>(o, size)), expected.o), kTolerance);
  EXPECT_LT(distance(values(download<Bfloat16>(gq, size)), expected.d_q), kTolerance);
  EXPECT_LT(distance(values(download<Bfloat16>(gk, kv_size)), expected.d_k), kTolerance);
  EXPECT_LT(distance(values(download<Bfloat16>(gv, kv_size)), expected.d_v), kTolerance);
}

TEST_F(Gpu, UnfusedAttentionAgreesWithTheCpu) {
  const CublasHandle cublas;
  for (const AttentionShape& shape :
       {AttentionShape{1, 1, 1, 128, 64}, {2, 3, 3, 128, 64}, {3, 2, 2, 64, 128}}) {
    expect_attention(*make_unfused_attention(cublas, shape), shape,
                     reference::HeadLayout::kByHeads);
  }
}

TEST_F(Gpu, FusedAttentionAgreesWithTheCpu) {
  const AttentionLibrary library;
  if (!library.why_not_fused().empty()) {
    GTEST_SKIP() << "needs cuDNN's attention: " << library.why_not_fused();
  }
  // The last two share heads of keys and values.
  for (const AttentionShape& shape : {AttentionShape{1, 1, 1, 256, 128},
                                      {2, 3, 3, 256, 64},
                                      {2, 4, 2, 256, 128},
                                      {3, 4, 1, 128, 64}}) {
    expect_attention(*make_fused_attention(library, shape), shape, reference::HeadLayout::kPacked);
  }
}

TEST_F(Gpu, TheTimerMeasuresADelayAndReadsTheCard) {
  const Card card(0);
  Timer timer(card, {.sample_target_us = 2000, .budget_us = 40e3});
  Point point;
  timer.measure(point, [](cudaStream_t stream, int) { kernels::delay(500'000, stream); });
  EXPECT_GT(point.time_us.median, 499);
  EXPECT_LT(point.time_us.median, 530);
  EXPECT_EQ(point.state.has_value(), card.nvml_reason().empty());
}

TEST_F(Gpu, AHoldLastsUntilItsTimeAndNoLongerThanThat) {
  const DeviceBuffer clock = poisoned(3 * sizeof(uint64_t));
  auto* stamps = clock.at<uint64_t>();
  kernels::stamp(stamps, nullptr);
  kernels::hold_until(stamps, 2'000'000, nullptr);
  kernels::stamp(stamps + 1, nullptr);
  kernels::hold_until(stamps, 1'000'000, nullptr);  // that has been
  kernels::stamp(stamps + 2, nullptr);
  const auto at = download<uint64_t>(clock, 3);
  EXPECT_GE(at[1] - at[0], 2'000'000U);
  EXPECT_LT(at[1] - at[0], 2'500'000U);
  EXPECT_LT(at[2] - at[1], 500'000U);
}

TEST_F(Gpu, TheTimerCoversTheWorkWithItsBackground) {
  const Card card(0);
  Timer timer(card, {.sample_target_us = 2000, .budget_us = 40e3});
  Point point;
  int background = 0;
  timer.measure_with(point, [](cudaStream_t stream, int) { kernels::delay(500'000, stream); },
                     {[&](cudaStream_t stream, int) {
                       ++background;
                       kernels::delay(200'000, stream);
                     }});
  EXPECT_GT(point.time_us.median, 499);
  // Each repetition of four launches needs at least ten of the background's.
  EXPECT_GT(background, 10 * static_cast<int>(point.samples_us.size()));
}

}  // namespace
}  // namespace pipesim::calibration
