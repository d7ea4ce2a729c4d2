// A GPU's bytes at other parallel sizes.
#include "sim/sensitivity/memory_scaling.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

#include "models/layer_parameters.h"
#include "sim/core/error.h"
#include "sim/read/scenario.h"

namespace pipesim::memory_scaling_test {
namespace {

const std::string kDense =
    "schedule: [1f1b, v-half]\n"
    "model: llama3-8b\n"
    "cluster: dgx-h100\n"
    "parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, "
    "sequence_parallel: true, data_parallel_size: 2}\n"
    "batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 4096}\n"
    "memory: {kind: model, use_distributed_optimizer: true}\n";
const std::string kGiven =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 16}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";

Scenario read(const std::string& text, const std::vector<Override>& overrides = {}) {
  return read_scenario(YamlSource("s.yaml", text, overrides));
}

MemoryScaling scaling_of(const std::string& text, size_t choice = 0) {
  return memory_scaling(read(text), choice, [&text](std::string_view key, int size) {
    return read(text,
                {parse_override(fmt::format("parallel.{}={}", key, size), {"line", 1, 1, ""})});
  });
}

const ScaledMemory& at(const MemoryScaling& scaling, std::string_view axis, int size) {
  const auto found = std::ranges::find_if(scaling.sizes, [&](const ScaledMemory& each) {
    return each.axis == axis && each.size == size;
  });
  if (found == scaling.sizes.end()) throw std::out_of_range(std::string(axis));
  return *found;
}

// 8 of the 32 layers, half of each by tensor ranks: 2 bytes a weight, 4 a gradient, 12 of Adam's
// state divided among the data ranks.
TEST(MemoryScaling, HoldsWhatParametersTake) {
  const MemoryScaling scaling = scaling_of(kDense);
  const Scenario scenario = read(kDense);
  const double parameters =
      8 * layer_parameters(scenario.modelled->model, LayerKind::kDense, {2, 1, 1}).dense;
  for (const int data : {1, 2, 8, 64}) {
    const ScaledMemory& scaled = at(scaling, "data_parallel_size", data);
    EXPECT_EQ(scaled.gpus, 8 * data);
    ASSERT_TRUE(scaled.held) << scaled.refusal;
    EXPECT_NEAR((*scaled.held)[HeldPart::kWeights] / Bytes(2 * parameters), 1, 1e-9);
    EXPECT_NEAR((*scaled.held)[HeldPart::kGradients] / Bytes(4 * parameters), 1, 1e-9);
    EXPECT_NEAR((*scaled.held)[HeldPart::kOptimizer] / Bytes(12 * parameters / data), 1, 1e-9);
  }
}

TEST(MemoryScaling, SaysWhatFollowsWhichSize) {
  const MemoryScaling scaling = scaling_of(kDense);
  const auto power = [&scaling](const char* axis, HeldPart part) {
    return exponent(scaling, axis, part).value();
  };
  for (const HeldPart part : {HeldPart::kWeights, HeldPart::kGradients, HeldPart::kOptimizer}) {
    EXPECT_NEAR(power("pipeline_model_parallel_size", part), 1, 1e-9);
    EXPECT_NEAR(power("tensor_model_parallel_size", part), 1, 0.01);
  }
  EXPECT_NEAR(power("data_parallel_size", HeldPart::kOptimizer), 1, 1e-9);
  EXPECT_NEAR(power("data_parallel_size", HeldPart::kMicrobatch), 0, 1e-9);
  EXPECT_NEAR(power("context_parallel_size", HeldPart::kWeights), 0, 1e-9);
  EXPECT_NEAR(power("context_parallel_size", HeldPart::kMicrobatch), 1, 0.01);
  // 1F1B has p microbatches in flight on its first stage, V-Half about half as much, and logits.
  EXPECT_NEAR(power("pipeline_model_parallel_size", HeldPart::kActivation), 0, 0.05);
  EXPECT_LT(
      at(scaling_of(kDense, 1), "pipeline_model_parallel_size", 16)
          .held.value()[HeldPart::kActivation],
      0.8 * at(scaling, "pipeline_model_parallel_size", 16).held.value()[HeldPart::kActivation]);
}

TEST(MemoryScaling, NamesWhatTheModelCannotTake) {
  const MemoryScaling scaling = scaling_of(kDense);
  const ScaledMemory& refused = at(scaling, "tensor_model_parallel_size", 16);
  EXPECT_FALSE(refused.held);
  EXPECT_EQ(refused.refusal.find("line:1"), std::string::npos) << refused.refusal;
  const std::string table = memory_scaling_table(scaling);
  EXPECT_NE(table.find("left out: tensor_model_parallel_size 16: "), std::string::npos) << table;
  EXPECT_EQ(table.find("expert"), std::string::npos) << "of a dense model";
  const std::string csv = memory_scaling_csv({&scaling, 1});
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + static_cast<long>(scaling.sizes.size()));
  EXPECT_THROW(scaling_of(kGiven), InputError);
}

}  // namespace
}  // namespace pipesim::memory_scaling_test
