#include "models/transformer.h"

#include <gtest/gtest.h>

#include "models/layer_parameters.h"
#include "tests/models/shapes.h"

namespace pipesim::transformer_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;
using testing::llama3_70b;
using testing::mixtral;

TEST(Transformer, CountsTheParametersOfNarayanansFormula) {
  const double h = 3072;
  const double l = 30;
  const double expected = 12 * l * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
  EXPECT_DOUBLE_EQ(total_parameters(gpt(30, 3072, 32)), expected + 2 * h) << "and the final norm";
}

TEST(Transformer, CountsThePublishedTotals) {
  EXPECT_DOUBLE_EQ(total_parameters(llama3_70b()), 70553706496);
  EXPECT_DOUBLE_EQ(total_parameters(mixtral()), 46702792704);
  EXPECT_DOUBLE_EQ(total_activated_parameters(mixtral()), 12879925248);
  EXPECT_DOUBLE_EQ(total_parameters(deepseek_v3()), 671026419200);
}

TEST(Transformer, CountsATiedMatrixOnceInTheTotalOnly) {
  Transformer model = gpt(2, 64, 4, 1000);
  const double tied = total_parameters(model);
  const double output = parameters(model, LayerKind::kOutput);
  model.tied_embeddings = false;
  EXPECT_DOUBLE_EQ(total_parameters(model), tied + 64 * 1000);
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kOutput), output);
}

TEST(Transformer, LeavesMtpModulesOutOfTheTotal) {
  Transformer model = deepseek_v3();
  // A layer, the projection and three norms; its embedding and output are shared.
  EXPECT_DOUBLE_EQ(mtp_parameters(model),
                   parameters(model, LayerKind::kMoe) + 2.0 * 7168 * 7168 + 3 * 7168);
  const double total = total_parameters(model);
  model.mtp_layers = 0;
  EXPECT_EQ(mtp_parameters(model), 0);
  EXPECT_EQ(total_parameters(model), total);
}

TEST(Transformer, KnowsWhichLayersHaveExperts) {
  const Transformer model = deepseek_v3();
  EXPECT_EQ(layer_kind(model, 2), LayerKind::kDense);
  EXPECT_EQ(layer_kind(model, 3), LayerKind::kMoe);
  EXPECT_EQ(moe_layers(model), 58);
  EXPECT_EQ(layer_kind(llama3_70b(), 79), LayerKind::kDense);
}

TEST(Transformer, SaysWhatIsWrongWithAShape) {
  EXPECT_EQ(fault_of(llama3_70b()), "");
  EXPECT_EQ(fault_of(deepseek_v3()), "");
  Transformer model = llama3_70b();
  model.num_query_groups = 7;
  EXPECT_EQ(fault_of(model), "64 attention heads do not divide into 7 query groups");
  model = mixtral();
  model.experts->experts_per_token = 9;
  EXPECT_EQ(fault_of(model), "a token cannot pass 9 of 8 experts");
  model = gpt(2, 64, 4);
  model.max_position_embeddings = 0;
  EXPECT_NE(fault_of(model).find("max_position_embeddings"), std::string::npos);
}

TEST(LayerContext, SaysWhyAModelCannotBeDivided) {
  LayerContext context;
  context.seq_length = 4096;
  EXPECT_EQ(fault_of(llama3_70b(), context), "");
  context.tensor = 16;
  EXPECT_EQ(fault_of(llama3_70b(), context),
            "num_query_groups 8 does not divide by tensor_model_parallel_size 16");
  context.tensor = 8;
  EXPECT_NE(fault_of(mixtral(), context).find("needs sequence_parallel"), std::string::npos);
  context.sequence_parallel = true;
  EXPECT_EQ(fault_of(mixtral(), context), "");
  context.expert = 3;
  EXPECT_EQ(fault_of(mixtral(), context),
            "num_experts 8 does not divide by expert_model_parallel_size 3");
}

}  // namespace
}  // namespace pipesim::transformer_test
