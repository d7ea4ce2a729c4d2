// Passes that compute: gradients by differences, and pipelines against one process and simulation.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "sim/read/scenario.h"
#include "sim/runtime/blas.h"
#include "sim/runtime/computed_work.h"
#include "sim/runtime/execution.h"
#include "tests/case/cases.h"

namespace pipesim::runtime::computed_test {
namespace {

class Computed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (blas_version().empty()) GTEST_SKIP() << "there is no OpenBLAS (libopenblas0)";
  }
};

SmallModel tiny() {
  Transformer shape;
  shape.num_layers = 2;
  shape.hidden_size = 16;
  shape.num_attention_heads = shape.num_query_groups = 2;
  shape.kv_channels = 8;
  shape.ffn_hidden_size = 32;
  shape.vocab_size = 11;
  shape.positions = Positions::kLearned;
  return {shape, 2, 8};
}

double loss_with(std::size_t weight, float change) {
  Ledger ledger;
  StageMath model(tiny(), {0, 2, 0, true, true}, ledger);
  model.weights()[weight] += change;
  (void)model.forward(3, {});
  return model.loss();
}

TEST_F(Computed, GradientsAreTheSlopesOfTheLoss) {
  Ledger ledger;
  StageMath model(tiny(), {0, 2, 0, true, true}, ledger);
  (void)model.forward(3, {});
  (void)model.backward(3, {});
  model.weight_gradients(3);
  EXPECT_EQ(ledger.held(), 0U);
  // Through the middle of the model and its ends; larger steps than float32 blurs.
  constexpr float kStep = 1e-2F;
  double worst = 0;
  double largest = 0;
  for (std::size_t at = 0; at < model.weights().size(); at += 37) {
    const double slope = (loss_with(at, kStep) - loss_with(at, -kStep)) / (2 * kStep);
    worst = std::max(worst, std::abs(slope - model.gradients()[at]));
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 0.02);
  EXPECT_LT(worst, 0.01 * largest);
}

Case case_with(const std::string& schedule, const std::string& more = "") {
  const std::string text = fmt::format(
      "schedule: {}\n"
      "model: {{num_layers: 4, hidden_size: 64, num_attention_heads: 2, ffn_hidden_size: 128, "
      "vocab_size: 96, max_position_embeddings: 32, family: gpt, normalization: RMSNorm, "
      "position_embedding_type: learned_absolute, add_bias_linear: false, "
      "untie_embeddings_and_output_weights: true}}\n"
      "parallel: {{pipeline_model_parallel_size: 2}}\n"
      "batch: {{num_microbatches: 4, micro_batch_size: 1, seq_length: 32}}\n"
      "cluster: cpu-cores\n{}",
      schedule, more);
  const Scenario scenario = read_scenario(YamlSource("test.yaml", text));
  return case_of(scenario, scenario.schedules.front());
}

TEST_F(Computed, PipelinesGiveTheGradientsOfOneProcessInTheMemorySimulated) {
  const std::string blocking = "framework: {transfers: blocking}\n";
  for (const auto& [schedule, more] : {std::pair<std::string, std::string>{"gpipe", ""},
                                       {"1f1b", ""},
                                       {"1f1b", blocking},
                                       {"interleaved-1f1b", blocking},
                                       {"zb-h1", ""},
                                       {"zb-v", ""}}) {
    const Execution execution = execute_computed(case_with(schedule, more), {});
    EXPECT_EQ(execution.disorder, "") << schedule;
    EXPECT_TRUE(execution.same_results) << schedule << ' ' << *execution.gradient_error;
    for (std::size_t device = 0; device < 2; ++device) {
      // A pass frees and makes tensors one by one, where the simulation does so at its ends.
      const double ratio = execution.peak_bytes[device] / execution.simulated_peak_bytes[device];
      EXPECT_NEAR(ratio, 1, 0.03) << schedule << " device " << device;
    }
  }
}

TEST_F(Computed, RefusesWhatItDoesNotCompute) {
  const Case llama = case_with("1f1b", "recompute: full\n");
  EXPECT_THROW((void)execute_computed(llama, {}), InfeasibleError);
  Transformer gated = tiny().shape;
  EXPECT_EQ(why_not_small(gated), "");
  gated.gated_mlp = true;
  EXPECT_NE(why_not_small(gated), "");
}

TEST(Differences, AreRelativeToTheLargest) {
  const std::vector<float> a{1, 2, -4};
  EXPECT_EQ(largest_difference(a, a), 0);
  EXPECT_EQ(largest_difference(std::vector<float>{1, 3, -4}, a), 0.25);
  EXPECT_TRUE(std::isinf(largest_difference({}, a)));
}

}  // namespace
}  // namespace pipesim::runtime::computed_test
