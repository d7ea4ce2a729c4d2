#include "models/recompute.h"

#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_work.h"
#include "tests/models/shapes.h"

namespace pipesim::recompute_test {
namespace {

using testing::deepseek_v3;
using testing::llama3_70b;
using testing::plain;
using enum RecomputeModule;

TEST(Recompute, ReadsBackWhatItWrites) {
  for (const std::string_view word : kRecomputeGranularities) {
    EXPECT_EQ(to_text(*recompute_from(word)), word);
  }
  for (const std::string_view name : kRecomputeModules) {
    const std::string expected = name == "core_attn" ? "selective" : std::string(name);
    EXPECT_EQ(to_text(*recompute_from(name)), expected);
  }
  EXPECT_EQ(to_text(kMlp | kLayerNorm), "mlp+layernorm");
  EXPECT_EQ(*recompute_from("layernorm+mlp"), kMlp | kLayerNorm);
  for (const char* wrong : {"", "+", "mlp+", "full+mlp", "Mlp"}) {
    EXPECT_FALSE(recompute_from(wrong)) << wrong;
  }
}

// Bytes that go from a layer with latent attention and shared experts, and flops that come, at 4096
// tokens on one GPU: h 7168, 256 experts of 2048, 8 a token, 1 shared; 128 heads.
TEST(Recompute, OfAModuleDropsItsTensorsAndRunsItsForwardAgain) {
  const Transformer model = deepseek_v3();
  const LayerContext context = plain(1, 4096);
  const double s = 4096;
  const double experts = 8 * s * 2048;
  const double queries = s * 128 * 192;
  struct Row {
    RecomputeGranularity modules;
    double bytes;
    double flops;
  };
  for (const Row& row : {
           Row{kMoeActivation, 2 * experts, 0},
           Row{kMlpActivation, 2 * s * 2048, 0},
           Row{kSharedExperts, 2 * 3 * s * 2048, 2 * s * 3 * 7168 * 2048},
           Row{kMoe, 2 * (8 * s * 7168 + 3 * experts + 3 * s * 2048) + 4 * s * 256,
               2 * s * 7168 * 256 + 2 * 3 * 7168 * (experts + s * 2048)},
           Row{kLatentUp, 2 * (2 * queries + s * 128 * 128),
               2 * s * (1536 * 128 * 192 + 512 * 128 * 256)},
           Row{kLayerNorm, 2 * 2 * s * 7168, 0},
           Row{kLatentNorm, 2 * s * (1536 + 512), 0},
       }) {
    LayerContext again = context;
    again.recompute = row.modules;
    const auto kept = [&](const LayerContext& with) {
      return layer_memory(model, LayerKind::kMoe, with).activation.value();
    };
    const auto computed = [&](const LayerContext& with) {
      return flops(layer_work(model, LayerKind::kMoe, PassKind::kB, with)).value();
    };
    EXPECT_DOUBLE_EQ(kept(context) - kept(again), row.bytes) << to_text(row.modules);
    EXPECT_NEAR((computed(again) - computed(context)) / 1e9, row.flops / 1e9, 1e-3)
        << to_text(row.modules);
  }
}

TEST(Recompute, CountsWhatAWholeContainsOnce) {
  const LayerContext context = plain(1, 4096);
  LayerContext whole = context;
  whole.recompute = kMlp;
  LayerContext both = context;
  both.recompute = kMlp | kMlpActivation;
  const auto work = [](const LayerContext& with) {
    return layer_work(llama3_70b(), LayerKind::kDense, PassKind::kB, with);
  };
  EXPECT_EQ(work(whole).moved, work(both).moved);
  EXPECT_EQ(work(whole).matmuls.size(), work(context).matmuls.size() + 2);
  const Flops again = flops(work(whole)) - flops(work(context));
  EXPECT_NEAR(again.value() / (2.0 * 4096 * 3 * 8192 * 28672), 1, 1e-9);
}

TEST(Recompute, OfTheMoeLayerExchangesTokensAgain) {
  LayerContext context = plain(1, 4096);
  context.expert = 8;
  const auto exchanges = [&] {
    return layer_work(deepseek_v3(), LayerKind::kMoe, PassKind::kB, context).collectives.size();
  };
  EXPECT_EQ(exchanges(), 2U);
  context.recompute = kMoe;
  EXPECT_EQ(exchanges(), 4U);
}

}  // namespace
}  // namespace pipesim::recompute_test
