// The arithmetic and indexing of every kernel, run on the host: by one thread, and by five that
// share a row as a block's threads do.
#include <array>
#include <barrier>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

#include "tests/calibration/reference.h"
#include "validate/calibration/harness/elements.h"
#include "validate/calibration/harness/rows.h"

namespace pipesim::calibration::kernel_bodies_test {
namespace {

using reference::distance;
using reference::kBf16Tolerance;
using reference::random_bf16;
using reference::values;
using reference::Values;

constexpr int kBlockThreads = 5;  // no power of two, and no divisor of the rows' packs

struct OneThreadBlock {
  static int thread() { return 0; }
  static int threads() { return 1; }
  static float sum(float value) { return value; }
  static float max(float value) { return value; }
};

struct Meeting {
  std::barrier<> barrier{kBlockThreads};
  std::array<float, kBlockThreads> slots{};
};

// One of the threads of a host block.
class HostBlock {
 public:
  HostBlock(Meeting& meeting, int thread) : meeting_(meeting), thread_(thread) {}
  int thread() const { return thread_; }
  int threads() const { return kBlockThreads; }
  float sum(float value) {
    return together(value, 0, [](float a, float b) { return a + b; });
  }
  float max(float value) {
    return together(value, -std::numeric_limits<float>::infinity(),
                    [](float a, float b) { return std::max(a, b); });
  }

 private:
  template <class F>
  float together(float value, float neutral, F combine) {
    meeting_.slots[static_cast<std::size_t>(thread_)] = value;
    meeting_.barrier.arrive_and_wait();
    float result = neutral;
    for (const float slot : meeting_.slots) result = combine(result, slot);
    meeting_.barrier.arrive_and_wait();
    return result;
  }

  Meeting& meeting_;
  int thread_;
};

// Runs `body(block, row)` for every row, with one thread or with five.
template <class F>
void run_rows(bool threaded, std::size_t rows, F body) {
  for (std::size_t row = 0; row < rows; ++row) {
    if (!threaded) {
      OneThreadBlock block;
      body(block, row);
      continue;
    }
    Meeting meeting;
    std::vector<std::thread> threads;
    for (int t = 0; t < kBlockThreads; ++t) {
      threads.emplace_back([&meeting, &body, t, row] {
        HostBlock block(meeting, t);
        body(block, row);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

class RowBodies : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kRows = 6;
  static constexpr std::size_t kColumns = 264;
  static constexpr int kWidth = static_cast<int>(kColumns);
  static constexpr float kEpsilon = 1e-5F;

  std::vector<Bfloat16> x_ = random_bf16(kRows * kColumns, 1);
  std::vector<Bfloat16> dy_ = random_bf16(kRows * kColumns, 2);
  std::vector<Bfloat16> weight_ = random_bf16(kColumns, 3);
  // Poisoned, so that an element that nobody writes shows.
  std::vector<Bfloat16> out_{kRows * kColumns, Bfloat16{0x7fc0}};
};

TEST_P(RowBodies, NormsForwardAndBackwardAgreeWithTheirDefinition) {
  for (const bool centred : {true, false}) {
    std::vector<NormStatistics> saved(kRows);
    run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
      norm_forward(block, centred, &x_[row * kColumns], weight_.data(), &out_[row * kColumns],
                   &saved[row], kWidth, kEpsilon);
    });
    const auto expected = reference::norm_forward(values(x_), values(weight_), centred, kEpsilon);
    EXPECT_LT(distance(values(out_), expected.y), kBf16Tolerance);

    std::vector<Bfloat16> dx(x_.size(), Bfloat16{0x7fc0});
    run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
      norm_backward(block, centred, &x_[row * kColumns], weight_.data(), &dy_[row * kColumns],
                    saved[row], &dx[row * kColumns], kWidth);
    });
    EXPECT_LT(distance(values(dx), reference::norm_backward(values(x_), values(weight_),
                                                            values(dy_), centred, kEpsilon)),
              kBf16Tolerance);
  }
}

TEST_P(RowBodies, SoftmaxIsCausalAndItsGradientIsExact) {
  constexpr float kScale = 0.7F;
  for (const std::size_t period : {std::size_t{0}, std::size_t{4}}) {
    run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
      const int valid = period == 0 ? kWidth : static_cast<int>(row % period) + 1;
      softmax_forward(block, &x_[row * kColumns], &out_[row * kColumns], kWidth, valid, kScale);
    });
    EXPECT_LT(
        distance(values(out_), reference::softmax_forward(values(x_), kColumns, kScale, period)),
        kBf16Tolerance);
    std::vector<Bfloat16> dx(x_.size(), Bfloat16{0x7fc0});
    run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
      softmax_backward(block, &out_[row * kColumns], &dy_[row * kColumns], &dx[row * kColumns],
                       kWidth, kScale);
    });
    EXPECT_LT(distance(values(dx),
                       reference::softmax_backward(values(out_), values(dy_), kColumns, kScale)),
              kBf16Tolerance);
  }
}

TEST_P(RowBodies, SoftmaxSurvivesScoresThatOverflowAnExponential) {
  for (Bfloat16& x : x_) x = Bfloat16::of(1000 + x.value());
  run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
    softmax_forward(block, &x_[row * kColumns], &out_[row * kColumns], kWidth, kWidth, 1.0F);
  });
  double sum = 0;
  for (const double p : values(out_)) sum += p;
  EXPECT_NEAR(sum, static_cast<double>(kRows), 0.02);
}

TEST_P(RowBodies, CrossEntropyAndItsGradientAgreeWithSoftmax) {
  const Values probabilities = reference::softmax_forward(values(x_), kColumns, 1, 0);
  std::vector<float> loss(kRows), log_sum(kRows);
  const auto label = [](std::size_t row) { return static_cast<int32_t>(37 * row + 5); };
  run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
    cross_entropy_forward(block, &x_[row * kColumns], label(row), &loss[row], &log_sum[row],
                          kWidth);
  });
  Values gradient = probabilities;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::size_t hit = row * kColumns + static_cast<std::size_t>(label(row));
    EXPECT_NEAR(loss[row], -std::log(probabilities[hit]), 1e-4);
    gradient[hit] -= 1;
  }
  run_rows(GetParam(), kRows, [&](auto& block, std::size_t row) {
    cross_entropy_backward(block, &x_[row * kColumns], label(row), log_sum[row],
                           &out_[row * kColumns], kWidth, 1.0F);
  });
  EXPECT_LT(distance(values(out_), gradient), kBf16Tolerance);
}

INSTANTIATE_TEST_SUITE_P(Blocks, RowBodies, ::testing::Bool(), [](const auto& info) {
  return info.param ? std::string("FiveThreads") : std::string("OneThread");
});

Pack pack_of(const std::vector<Bfloat16>& source, std::size_t first) {
  Pack pack;
  std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(first), kPack, pack.item);
  return pack;
}

TEST(ElementBodies, ActivationsAndTheirSlopesAgreeWithCentralDifferences) {
  const auto a = random_bf16(kPack, 1), b = random_bf16(kPack, 2), dy = random_bf16(kPack, 3);
  const Pack x = pack_of(a, 0), up = pack_of(b, 0), gradient = pack_of(dy, 0);
  const Pack forward = gelu_forward(x), backward = gelu_backward(x, gradient);
  const Pack gated = swiglu_forward(x, up);
  const GatedGradient d = swiglu_backward(x, up, gradient);
  for (int i = 0; i < kPack; ++i) {
    const double v = x.item[i].value(), u = up.item[i].value(), g = gradient.item[i].value();
    const auto near = [](Bfloat16 value, double expected) {
      EXPECT_NEAR(value.value(), expected, 4e-3 * std::abs(expected) + 1e-5);
    };
    near(forward.item[i], reference::gelu(v));
    near(backward.item[i], g * reference::slope(reference::gelu, v));
    near(gated.item[i], reference::silu(v) * u);
    near(d.up.item[i], g * reference::silu(v));
    near(d.gate.item[i], g * u * reference::slope(reference::silu, v));
  }
}

TEST(ElementBodies, DropoutKeepsItsShareScalesTheRestAndRemembersTheMask) {
  const Dropout dropout{.seed = 7, .probability = 0.25F};
  const Pack ones = [] {
    Pack pack;
    for (Bfloat16& item : pack.item) item = Bfloat16::of(1);
    return pack;
  }();
  Pack zeros{};
  int kept = 0;
  constexpr int kPacks = 4000;
  for (uint64_t p = 0; p < kPacks; ++p) {
    MaskPack mask;
    const Pack y = dropout_add_forward(dropout, ones, zeros, p * kPack, mask);
    const Pack dx = dropout_backward(dropout, ones, mask);
    for (int i = 0; i < kPack; ++i) {
      kept += mask.keep[i];
      const float expected = mask.keep[i] != 0 ? Bfloat16::of(1 / 0.75F).value() : 0.0F;
      EXPECT_EQ(y.item[i].value(), expected);
      EXPECT_EQ(dx.item[i].value(), expected);
    }
  }
  // Binomial: the standard deviation of the share is 0.0024.
  EXPECT_NEAR(static_cast<double>(kept) / (kPacks * kPack), 0.75, 0.012);
}

TEST(ElementBodies, AdamTakesTheStepOfItsPaper) {
  const AdamSettings settings{
      .rate = 0.01F, .decay = 0.1F, .correction1 = 0.1F, .correction2 = 0.05F};
  const AdamState state = adam_step(settings, {2.0F, 0.0F, 0.0F}, 0.5F);
  EXPECT_FLOAT_EQ(state.first, 0.05F);
  EXPECT_FLOAT_EQ(state.second, 0.0125F);
  // After bias correction the first step is the sign of the gradient, plus the decay.
  EXPECT_NEAR(state.weight, 2.0 - 0.01 * (1.0 + 0.1 * 2.0), 1e-6);
}

TEST(Bfloat16, RoundsToNearestWithTiesToEvenAndKeepsNan) {
  EXPECT_EQ(Bfloat16::of(1.0F).bits, 0x3f80);
  EXPECT_EQ(Bfloat16::of(1.0F + 0x1p-8F).bits, 0x3f80);            // a tie, to even
  EXPECT_EQ(Bfloat16::of(1.0F + 0x1p-7F + 0x1p-8F).bits, 0x3f82);  // a tie, to even
  EXPECT_EQ(Bfloat16::of(1.0F + 0x1p-8F + 0x1p-20F).bits, 0x3f81);
  EXPECT_EQ(Bfloat16::of(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(Bfloat16::of(std::numeric_limits<float>::quiet_NaN()).value()));
}

}  // namespace
}  // namespace pipesim::calibration::kernel_bodies_test
