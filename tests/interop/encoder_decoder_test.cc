// T5 as Megatron-LM's arguments and NeMo's files have it: layers of two parts, stages of each.
#include <algorithm>
#include <gtest/gtest.h>

#include "models/layer_parameters.h"
#include "sim/core/error.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::encoder_decoder_test {
namespace {

Draft imported(const std::string& arguments, const Given& given = {}) {
  Settings settings = read_arguments("run.sh", arguments, given);
  for (const auto& [name, value] : given) settings.give(name, value, {});
  return megatron_draft(settings, "dgx-h100");
}

Draft of_yaml(const std::string& text, const Given& given = {}) {
  Settings settings = read_yaml_settings("megatron", "c.yaml", text, given);
  for (const auto& [name, value] : given) settings.give(name, value, {});
  return megatron_draft(settings, "dgx-h100");
}

Scenario read(const Draft& draft) {
  EXPECT_TRUE(draft.missing.empty() && draft.stops.empty()) << summary_of(draft);
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

bool stops_at(const Draft& draft, const std::string& name) {
  return std::ranges::any_of(draft.stops, [&](const auto& stop) { return stop.first == name; });
}

// Megatron-LM's 220M without the sizes of a run.
const std::string kT5 =
    "torchrun --nproc_per_node 8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 12 "
    "--hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 "
    "--encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 "
    "--micro-batch-size 4 --global-batch-size 32 --bf16 --vocab-size 28996 "
    "--vocab-extra-ids 100 --tokenizer-type BertWordPieceCase ";

TEST(EncoderDecoder, ReadsMegatronsArguments) {
  const Scenario scenario = read(imported(kT5 + "--transformer-impl transformer_engine"));
  const Transformer& model = scenario.modelled->model;
  EXPECT_EQ(model.num_layers, 24);
  EXPECT_EQ(model.cross, (CrossAttention{.encoder_layers = 12, .decoder_seq_length = 128}));
  EXPECT_EQ(scenario.batch.seq_length, 512);
  EXPECT_FALSE(model.bidirectional);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(scenario.modelled->context.flash_attention);
  EXPECT_NEAR(total_parameters(model), 220e6, 0.01 * 220e6);
}

TEST(EncoderDecoder, HasAsManyLayersOfEachWhereOneNumberIsSaid) {
  std::string older = kT5;
  older.replace(older.find("--encoder-num-layers 12 --decoder-num-layers 12"), 47,
                "--num-layers 12");
  const Scenario scenario = read(imported(older));
  EXPECT_EQ(scenario.modelled->model.num_layers, 24);
  EXPECT_EQ(scenario.modelled->model.cross->encoder_layers, 12);
  // Releases of that time have no fused attention for it.
  EXPECT_FALSE(scenario.modelled->context.flash_attention);
}

TEST(EncoderDecoder, DividesThePipelineAsItsReleaseDoes) {
  const Scenario older = read(
      imported(kT5 + "--pipeline-model-parallel-size 8 --pipeline-model-parallel-split-rank 2"));
  EXPECT_EQ(older.parallel.pipeline, 8);
  EXPECT_EQ(older.modelled->split.listed, (std::vector<int>{6, 6, 2, 2, 2, 2, 2, 2}));
  const Scenario later = read(
      imported(kT5 + "--pipeline-model-parallel-size 6 --encoder-pipeline-model-parallel-size 2"));
  EXPECT_EQ(later.parallel.pipeline, 8);
  EXPECT_EQ(later.modelled->split.listed, older.modelled->split.listed);
  EXPECT_EQ(imported(kT5 + "--pipeline-model-parallel-size 8").missing,
            (std::vector<std::string>{
                "the first stage that decodes, from 1 on: pipeline_model_parallel_split_rank=N"}));
  EXPECT_TRUE(stops_at(imported(kT5 + "--pipeline-model-parallel-size 8 "
                                      "--pipeline-model-parallel-split-rank 3"),
                       "pipeline_model_parallel_split_rank"));
}

TEST(EncoderDecoder, StopsAtWhatIsNotUnderstood) {
  const std::string stages =
      "--pipeline-model-parallel-size 4 --pipeline-model-parallel-split-rank 2 ";
  EXPECT_TRUE(stops_at(imported(kT5 + stages + "--num-layers-per-virtual-pipeline-stage 3"),
                       "virtual_pipeline_model_parallel_size"));
  EXPECT_TRUE(stops_at(imported(kT5 + stages + "--encoder-tensor-model-parallel-size 2"),
                       "encoder_tensor_model_parallel_size"));
  EXPECT_TRUE(stops_at(imported(kT5 + "--recompute-granularity full --recompute-method block "
                                      "--recompute-num-layers 3"),
                       "recompute_num_layers"));
  EXPECT_EQ(imported(kT5 + "--recompute-granularity full --recompute-method block "
                           "--recompute-num-layers 12")
                .recompute,
            "full");
}

TEST(EncoderDecoder, AsksForTheTokensThatAreDecoded) {
  std::string without = kT5;
  without.erase(without.find("--decoder-seq-length 128 "), 25);
  EXPECT_EQ(imported(without).missing,
            (std::vector<std::string>{"the tokens that are decoded: decoder_seq_length=N"}));
}

TEST(EncoderDecoder, ReadsMegatronsTests) {
  const Scenario scenario = read(of_yaml(
      "MODEL_ARGS:\n  --encoder-num-layers: 24\n  --decoder-num-layers: 24\n"
      "  --hidden-size: 4096\n  --num-attention-heads: 64\n  --kv-channels: 64\n"
      "  --ffn-hidden-size: 10240\n  --encoder-seq-length: 512\n  --decoder-seq-length: 128\n"
      "  --max-position-embeddings: 512\n  --tensor-model-parallel-size: 4\n"
      "  --micro-batch-size: 4\n  --global-batch-size: 8\n  --bf16: true\n"
      "  --transformer-impl: transformer_engine\n  --tokenizer-type: BertWordPieceCase\n",
      {{"world_size", "8"}, {"vocab_size", "28996"}}));
  EXPECT_EQ(scenario.modelled->model.cross->encoder_layers, 24);
  EXPECT_EQ(scenario.parallel.tensor, 4);
}

// NeMo's sizes of either part.
std::string nemo(const std::string& decoder, const std::string& more = "") {
  const std::string part =
      "num_layers: 24, hidden_size: 2048, ffn_hidden_size: 5120, num_attention_heads: 32, "
      "kv_channels: 64, hidden_dropout: 0.1, attention_dropout: 0.1, activation: geglu, "
      "normalization: layernorm, bias: true, position_embedding_type: learned_absolute, "
      "activations_checkpoint_granularity: full, activations_checkpoint_method: block, "
      "activations_checkpoint_num_layers: 0";
  return "name: megatron_t5\ntrainer: {num_nodes: 2, devices: 8, precision: bf16}\n"
         "model:\n  micro_batch_size: 24\n  global_batch_size: 2112\n"
         "  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 4\n"
         "  pipeline_model_parallel_split_rank: ${divide_floor:${.pipeline_model_parallel_size}, "
         "2}\n  make_vocab_size_divisible_by: 128\n  megatron_amp_O2: true\n  seq_length: 512\n"
         "  max_position_embeddings: ${.seq_length}\n  share_token_embeddings: true\n"
         "  share_decoder_tokens_head_embeddings: true\n  encoder: {" +
         part + "}\n  decoder: {" + part + decoder + "}\n  optim: {name: fused_adam}\n" +
         "  data: {seq_length: 512, seq_length_dec: 128}\n" + more;
}

TEST(EncoderDecoder, ReadsNemosSectionsOfEitherPart) {
  const Scenario scenario = read(of_yaml(nemo(""), {{"vocab_size", "29000"}}));
  const Transformer& model = scenario.modelled->model;
  EXPECT_EQ(model.num_layers, 48);
  EXPECT_EQ(model.hidden_size, 2048);
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.cross, (CrossAttention{.encoder_layers = 24, .decoder_seq_length = 128}));
  EXPECT_EQ(scenario.modelled->split.listed, (std::vector<int>{12, 12, 12, 12}));
  EXPECT_FALSE(scenario.modelled->context.flash_attention);
}

TEST(EncoderDecoder, StopsAtADecoderOfOtherSizes) {
  const Draft draft = of_yaml(nemo(", head_of_its_own_hidden_size: 1"), {{"vocab_size", "29000"}});
  EXPECT_TRUE(stops_at(draft, "decoder.head_of_its_own_hidden_size")) << summary_of(draft);
  EXPECT_TRUE(
      stops_at(of_yaml(nemo("", "  share_token_embeddings: false\n"), {{"vocab_size", "29000"}}),
               "share_token_embeddings"));
}

TEST(EncoderDecoder, TakesAModelByNameWithTheScriptsStages) {
  const std::string sizes =
      "torchrun --nproc_per_node 8 pretrain_t5.py --micro-batch-size 1 --global-batch-size 32 "
      "--bf16 --encoder-seq-length 512 --pipeline-model-parallel-size 4 "
      "--pipeline-model-parallel-split-rank 2 --decoder-seq-length ";
  const Scenario scenario = read(imported(sizes + "114", {{"model", "t5-11b"}}));
  EXPECT_EQ(scenario.modelled->model.name, "t5-11b");
  EXPECT_EQ(scenario.modelled->model.cross->decoder_seq_length, 114);
  EXPECT_EQ(scenario.modelled->split.listed, (std::vector<int>{12, 12, 12, 12}));
  EXPECT_EQ(imported(sizes + "128", {{"model", "t5-11b"}}).model_name, "t5-11b");
  EXPECT_THROW((void)imported(sizes + "128", {{"model", "llama3-8b"}}), InputError);
}

}  // namespace
}  // namespace pipesim::encoder_decoder_test
