#include "validate/calibration/shapes.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>

#include "validate/calibration/compose.h"

namespace pipesim::calibration::shapes_test {
namespace {

TEST(Shapes, AGptLayerCostsTwelveHiddenSquaredPerTokenAndPass) {
  const LayerSlice slice{layer_named("gpt-6.2b"), 1, 2, 1024};
  for (const MatmulPass pass :
       {MatmulPass::kForward, MatmulPass::kInputGradient, MatmulPass::kWeightGradient}) {
    double flops = 0;
    for (const MatmulSpec& spec : layer_matmuls(slice, Precision::kBf16)) {
      if (spec.pass == pass) flops += spec.flops();
    }
    EXPECT_EQ(flops, 2.0 * 2048 * 12 * 4096.0 * 4096.0);
  }
}

TEST(Shapes, TensorParallelSlicesDivideTheMatmulsOfALayer) {
  const auto flops = [](int64_t tensor_parallel) {
    double sum = 0;
    const LayerSlice slice{layer_named("llama3-70b"), tensor_parallel, 1, 4096};
    for (const MatmulSpec& spec : layer_matmuls(slice, Precision::kBf16)) sum += spec.flops();
    return sum;
  };
  EXPECT_EQ(flops(1), 8 * flops(8));
}

TEST(Shapes, ASliceThatDoesNotDivideIsRefusedByName) {
  const LayerSlice slice{layer_named("gpt-1.5b"), 7, 1, 1024};
  try {
    (void)layer_matmuls(slice, Precision::kBf16);
    FAIL() << "24 heads over 7 ranks were accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "heads 24 does not divide by 7");
  }
}

TEST(Shapes, CausalAttentionIsHalfOfTheSquare) {
  const AttentionShape shape{2, 32, 8, 1024, 128};
  const Attention forward = shape.attention(false);
  EXPECT_EQ(forward.flops.value(), 2.0 * 2 * 32 * 1024.0 * 1024.0 * 128);
  EXPECT_EQ(shape.attention(true).flops, 2.5 * forward.flops);
  // Queries and results of 32 heads, keys and values of 8, bf16.
  EXPECT_EQ(forward.moved.value(), 2.0 * 2 * 1024 * (2 * 32 + 2 * 8) * 128);
  EXPECT_EQ(shape.attention(true).moved, 2 * forward.moved);
}

TEST(Shapes, AdamMovesThirtyBytesPerParameter) {
  EXPECT_EQ((KernelSpec{Kernel::kAdamStep, 10, 8}.bytes()), 30.0 * 80);
}

TEST(Shapes, EveryKernelHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Kernel kernel : all_kernels()) names.insert(name_of(kernel));
  EXPECT_EQ(names.size(), all_kernels().size());
  EXPECT_EQ(names.size(), 18u);
}

template <class T>
bool unique(const std::vector<T>& values) {
  return std::set<T>(values.begin(), values.end()).size() == values.size();
}

TEST(Plan, MeasuresNothingTwiceAndKeepsItsTime) {
  for (const Mode mode : {Mode::kQuick, Mode::kFull}) {
    const Plan plan = make_plan(mode);
    EXPECT_TRUE(unique(plan.matmuls));
    EXPECT_TRUE(unique(plan.attention));
    EXPECT_TRUE(unique(plan.kernels));
    const double points =
        static_cast<double>(plan.matmuls.size() + plan.kernels.size() + 2 * plan.attention.size());
    // Timing alone, without what the libraries take to choose and to compile.
    EXPECT_LT(points * plan.point_budget_us * 1e-6, 0.7 * plan.time_limit_s);
    EXPECT_LT(plan.time_limit_s, mode == Mode::kFull ? 480 : 120);
  }
}

TEST(Plan, FullCoversThePublishedHiddenSizesSlicesAndTokens) {
  const Plan plan = make_plan(Mode::kFull);
  for (const int64_t hidden : {2304, 4096, 5120, 6144, 8192}) {
    for (const int64_t tensor_parallel : {1, 2, 4, 8}) {
      for (const int64_t tokens : {1024, 2048, 4096, 8192}) {
        for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
          const MatmulSpec wanted{MatmulPass::kWeightGradient, precision, tokens,
                                  4 * hidden / tensor_parallel, hidden};
          EXPECT_NE(std::ranges::find(plan.matmuls, wanted), plan.matmuls.end())
              << hidden << " / " << tensor_parallel << " x " << tokens;
        }
      }
    }
  }
}

TEST(Plan, EveryPartOfAPlannedLayerIsMeasured) {
  for (const Mode mode : {Mode::kQuick, Mode::kFull}) {
    const Plan plan = make_plan(mode);
    std::set<std::string> keys;
    for (const auto& spec : plan.matmuls) keys.insert(point_of(spec).key());
    for (const auto& spec : plan.kernels) keys.insert(point_of(spec).key());
    for (const auto& shape : plan.attention) {
      keys.insert(point_of(shape, false).key());
      keys.insert(point_of(shape, true).key());
    }
    for (const LayerSlice& slice : plan.layers) {
      for (const char pass : {'F', 'B', 'W'}) {
        for (const std::string& key : layer_parts(slice, pass))
          EXPECT_EQ(keys.count(key), 1u) << key;
        for (const std::string& key : vocabulary_parts(slice, pass)) {
          EXPECT_EQ(keys.count(key), 1u) << key;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pipesim::calibration::shapes_test
