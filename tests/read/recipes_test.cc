#include "sim/read/recipes.h"

#include <gtest/gtest.h>

#include "sim/read/hardware.h"
#include "sim/read/model.h"

namespace pipesim::recipes_test {
namespace {

size_t recipes_of(const char* model) {
  Gpu gpu;
  gpu.name = "b200-sxm";
  return recipes_for(find_model(model, {}), gpu, "fp8", 8192, 8).size();
}

TEST(Recipes, AMixtureDoesNotTakeThatOfADenseModelOfItsWidths) {
  const Transformer mixture = find_model("mixtral-8x7b", {});
  const Transformer dense = find_model("llama3-8b", {});
  EXPECT_EQ(mixture.hidden_size, dense.hidden_size);
  EXPECT_EQ(mixture.ffn_hidden_size, dense.ffn_hidden_size);
  EXPECT_EQ(shape_of(mixture), shape_of(dense) + "x8");
  EXPECT_GT(recipes_of("llama3-8b"), 0U);
  EXPECT_EQ(recipes_of("mixtral-8x7b"), 0U);
}

TEST(Recipes, HasThoseOfThePrecisionFirst) {
  Gpu gpu;
  gpu.name = "h100-sxm";
  const Transformer model = find_model("llama3-70b", {});
  for (const char* precision : {"bf16", "fp8"}) {
    const auto recipes = recipes_for(model, gpu, precision, 8192, 8);
    ASSERT_FALSE(recipes.empty());
    EXPECT_EQ(recipes.front().precision, precision);
    EXPECT_NE(recipes.back().precision, precision) << "others come behind";
  }
}

}  // namespace
}  // namespace pipesim::recipes_test
