// Models that encode one sequence and decode another: T5.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "models/layout.h"
#include "models/memory_model.h"
#include "models/step_cost.h"
#include "tests/models/shapes.h"

namespace pipesim {
namespace {

using testing::gpt;
using testing::sequence;

// T5 as published: RMS norms, no biases, relative positions.
Transformer t5(int layers, int hidden, int heads, int head_size, int ffn, int vocabulary = 32128) {
  Transformer model;
  model.name = "t5";
  model.num_layers = 2 * layers;
  model.hidden_size = hidden;
  model.num_attention_heads = heads;
  model.num_query_groups = heads;
  model.kv_channels = head_size;
  model.ffn_hidden_size = ffn;
  model.vocab_size = vocabulary;
  model.tied_embeddings = true;
  model.positions = Positions::kRelative;
  model.cross = CrossAttention{.encoder_layers = layers, .decoder_seq_length = 128};
  return model;
}

Transformer t5_of_megatron(int layers, int hidden, int heads, int vocabulary) {
  Transformer model = gpt(2 * layers, hidden, heads, vocabulary);
  model.max_position_embeddings = 512;
  model.cross = CrossAttention{.encoder_layers = layers, .decoder_seq_length = 128};
  return model;
}

TEST(CrossAttention, HasThePublishedTotals) {
  EXPECT_DOUBLE_EQ(total_parameters(t5(6, 512, 8, 64, 2048)), 60506624);
  EXPECT_DOUBLE_EQ(total_parameters(t5(12, 768, 12, 64, 3072)), 222903552);
  EXPECT_DOUBLE_EQ(total_parameters(t5(24, 1024, 16, 64, 4096)), 737668096);
  EXPECT_DOUBLE_EQ(total_parameters(t5(24, 1024, 32, 128, 16384)), 2851598336);
  EXPECT_DOUBLE_EQ(total_parameters(t5(24, 1024, 128, 128, 65536)), 11307321344);
  Transformer xxl = t5(24, 4096, 64, 64, 10240);  // 1.1, as Flan-T5
  xxl.gated_mlp = true;
  xxl.tied_embeddings = false;
  EXPECT_DOUBLE_EQ(total_parameters(xxl), 11135332352);
}

TEST(CrossAttention, HasTheParametersOfMegatronsSmallestModel) {
  const double h = 768;
  const double norm = 2 * h;
  const double attention = 4 * h * h + 4 * h;
  const double mlp = 8 * h * h + 5 * h;
  const double encoder = 12 * (attention + mlp + 2 * norm) + norm;
  const double decoder = 12 * (2 * attention + mlp + 3 * norm) + norm;
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  EXPECT_DOUBLE_EQ(total_parameters(model), encoder + decoder + (29184 + 512) * h);
  EXPECT_NEAR(total_parameters(model), 220e6, 0.01 * 220e6);
}

TEST(CrossAttention, TakesTheFlopsOfAHandCount) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  const double h = 768;
  const double b = 3;
  const double s = 512;  // encoded
  const double d = 128;  // decoded
  LayerContext context = sequence(512);
  context.micro_batch_size = 3;
  const auto count = [&](LayerKind kind, PassKind pass) {
    return flops(layer_work(model, kind, pass, context)).value();
  };
  // Bidirectional: all pairs.
  EXPECT_DOUBLE_EQ(count(LayerKind::kBothWays, PassKind::kF), b * (24 * s * h * h + 4 * s * s * h));
  const double linear = b * (24 * d * h * h     // self-attention and MLP
                             + 4 * d * h * h    // queries and output of cross attention
                             + 4 * s * h * h);  // its keys and values
  const double scores = b * (2 * d * d * h + 4 * d * s * h);  // the first are causal
  EXPECT_DOUBLE_EQ(count(LayerKind::kCross, PassKind::kF), linear + scores);
  EXPECT_DOUBLE_EQ(count(LayerKind::kCross, PassKind::kB), linear + 2.5 * scores);
  EXPECT_DOUBLE_EQ(count(LayerKind::kCross, PassKind::kW), linear);
  EXPECT_DOUBLE_EQ(count(LayerKind::kOutput, PassKind::kF), b * 2 * d * h * 29184);
  EXPECT_DOUBLE_EQ(count(LayerKind::kDecoderEmbedding, PassKind::kF), 0);
  EXPECT_DOUBLE_EQ(
      model_flops(model, 512, true).value(),
      3 / b *
          (12 * count(LayerKind::kBothWays, PassKind::kF) +
           12 * count(LayerKind::kCross, PassKind::kF) + count(LayerKind::kOutput, PassKind::kF)));
  context.flash_attention = false;  // all scores are made, masked or not
  EXPECT_DOUBLE_EQ(count(LayerKind::kCross, PassKind::kF),
                   linear + b * (4 * d * d * h + 4 * d * s * h));
}

TEST(CrossAttention, ExchangesTheEncodersOutputAmongTensorRanks) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  LayerContext context = sequence(512, 4);
  context.sequence_parallel = true;
  const auto bytes = [&](LayerKind kind, PassKind pass) {
    double sum = 0;
    for (const Collective& each : layer_work(model, kind, pass, context).collectives) {
      sum += each.bytes.value();
    }
    return sum;
  };
  const double decoded = 128 * 768 * 2;
  const double encoded = 512 * 768 * 2;
  // Gathers before and scatters behind three parts, and a gather of the encoder's output.
  EXPECT_DOUBLE_EQ(bytes(LayerKind::kCross, PassKind::kF), 6 * decoded + encoded);
  EXPECT_DOUBLE_EQ(bytes(LayerKind::kCross, PassKind::kB), 6 * decoded + encoded);
  EXPECT_DOUBLE_EQ(bytes(LayerKind::kCross, PassKind::kW), 3 * decoded + encoded);
  EXPECT_DOUBLE_EQ(bytes(LayerKind::kBothWays, PassKind::kF), 4 * encoded);
}

TEST(CrossAttention, KeepsKeysOfTheEncodersTokensAndItsOutputOnceAStage) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  const LayerContext context = sequence(512);
  const double h = 768;
  const double s = 512;
  const double d = 128;
  // Beside a GPT layer's: inputs of the norm and of queries, queries, output; keys and values.
  const Transformer causal = gpt(12, 768, 12, 29184);
  const double self = testing::kept(causal, LayerKind::kDense, sequence(128));
  EXPECT_DOUBLE_EQ(testing::kept(model, LayerKind::kCross, context),
                   self + 8 * d * h + 4 * s * h + 4 * d * 12);
  EXPECT_DOUBLE_EQ(layer_memory(model, LayerKind::kCross, context).checkpoint.value(), 2 * d * h);
  EXPECT_DOUBLE_EQ(layer_memory(model, LayerKind::kBothWays, context).checkpoint.value(),
                   2 * s * h);
  const MemoryModel memory(model, context, {});
  const StageMemory later = memory.stage({.first = 18, .layers = 6});
  EXPECT_DOUBLE_EQ(later.activation.value(),
                   6 * testing::kept(model, LayerKind::kCross, context) + 2 * s * h);
  EXPECT_DOUBLE_EQ(later.checkpoint.value(), 6 * 2 * d * h + 2 * s * h);
}

TEST(CrossAttention, SendsTheEncodersOutputWithWhatIsDecoded) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  LayerContext context = sequence(512, 2);
  const auto sent = [&](int first) {
    return message_bytes(model, context, {.first = first, .layers = 6}).value();
  };
  const double one = 768 * 2;
  EXPECT_DOUBLE_EQ(sent(0), 512 * one);
  EXPECT_DOUBLE_EQ(sent(6), 512 * one);  // to the first stage that decodes
  EXPECT_DOUBLE_EQ(sent(12), (512 + 128) * one);
  EXPECT_DOUBLE_EQ(sent(18), (512 + 128) * one);
  context.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(sent(12), (512 + 128) * one / 2);
}

TEST(CrossAttention, EmbedsAgainWhereTheDecoderBegins) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  const std::vector<int> stages{6, 6, 6, 6};
  const Layout layout = listed_layout(model, stages);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    EXPECT_EQ(count_layers(model, layout.stages[stage])[LayerKind::kDecoderEmbedding],
              stage == 2 ? 1 : 0);
  }
  EXPECT_FALSE(same_kinds(model, layout.stages[2], layout.stages[3]));
  // The matrix stands on three devices, and once where one holds all layers.
  const LayerContext context = sequence(512);
  const auto held = [&](int stage) {
    return held_parameters(model, context, {&layout.stages[static_cast<size_t>(stage)], 1}).dense;
  };
  const double shared = (29184 + 512) * 768.0;
  const StageLayers all{0, 24, 0, true, true};
  const double whole = held_parameters(model, context, {&all, 1}).dense;
  EXPECT_DOUBLE_EQ(whole, total_parameters(model));
  EXPECT_DOUBLE_EQ(held(0) + held(1) + held(2) + held(3), whole + shared + 29184 * 768.0);
  const MemoryModel memory(model, context, {});
  double vocabulary = 0;
  for (const StageLayers& stage : layout.stages) {
    vocabulary += memory.device({&stage, 1}).vocabulary.value();
  }
  EXPECT_DOUBLE_EQ(vocabulary - memory.device({&all, 1}).vocabulary.value(),
                   (shared + 29184 * 768.0) * (2 + 4 + 12));
}

TEST(CrossAttention, RefusesStagesOfBothPartsAndSeveralADevice) {
  const Transformer model = t5_of_megatron(12, 768, 12, 29184);
  const auto fault = [&](const std::vector<int>& stages, bool several) {
    return fault_of(model, listed_layout(model, stages), several);
  };
  EXPECT_EQ(fault({24}, false), "");
  EXPECT_EQ(fault({4, 8, 12}, false), "");
  EXPECT_NE(fault({8, 8, 8}, false).find("num_layers_per_stage"), std::string::npos);
  EXPECT_EQ(fault({6, 6, 6, 6}, true),
            "gpt encodes and decodes: its pipeline has one stage a device, as Megatron's");
}

TEST(CrossAttention, RefusesWhatIsNotModelled) {
  Transformer model = t5_of_megatron(12, 768, 12, 29184);
  EXPECT_EQ(fault_of(model), "");
  LayerContext context = sequence(512);
  EXPECT_EQ(fault_of(model, context), "");
  context.context = 2;
  EXPECT_EQ(fault_of(model, context), "context parallelism of cross attention is not modelled");
  context = sequence(512);
  context.whole = 512;
  EXPECT_EQ(fault_of(model, context), "cross attention between parts of sequences is not modelled");
  context = sequence(512);
  context.vocabulary_devices = 4;
  EXPECT_FALSE(fault_of(model, context).empty());
  model.layer_pattern = "GW";
  model.attention_window = 64;
  EXPECT_EQ(fault_of(model), "cross_attention is known beside plain attention and MLPs alone");
  model.layer_pattern = "";
  model.attention_window = 0;
  model.cross->encoder_layers = 24;
  EXPECT_EQ(fault_of(model), "24 of 24 layers cannot encode what the others attend to");
}

}  // namespace
}  // namespace pipesim
