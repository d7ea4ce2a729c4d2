// Launch scripts as settings: which command trains, what is asked for, and what stops the import.
#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::launch_scripts_test {
namespace {

// NAME=value is a variable of the script or a setting, by the command line's rule.
Draft imported(const std::string& text, const Given& given = {}) {
  Settings settings = read_arguments("run.sh", text, given);
  for (const auto& [name, value] : given) settings.give(name, value, {});
  return megatron_draft(settings, "dgx-h100");
}

Scenario read(const Draft& draft) {
  EXPECT_TRUE(draft.missing.empty() && draft.stops.empty()) << summary_of(draft);
  return read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
}

std::vector<std::string> stops_of(const Draft& draft) {
  std::vector<std::string> names;
  for (const auto& [name, words] : draft.stops) names.push_back(name);
  return names;
}

const std::string kModel =
    " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --vocab-size 128256 --seq-length "
    "4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 "
    "--hidden-dropout 0 --attention-dropout 0 ";

TEST(LaunchScript, TakesTheCommandThatTrains) {
  const Draft draft = imported(
      "python tools/preprocess_data.py --seq-length 64 --micro-batch-size 1\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16" +
      kModel +
      "\n"
      "python tasks/evaluate.py --micro-batch-size 16 --seq-length 1024 --bf16\n");
  EXPECT_EQ(read(draft).batch.seq_length, 4096);
  EXPECT_EQ(read(draft).batch.micro_batch_size, 1);
  EXPECT_EQ(draft.command.find("line 2 (pretrain_gpt.py)"), 0U) << draft.command;
}

TEST(LaunchScript, NamesOthersThatAreLeftOutAndTakesTheOneAskedFor) {
  const std::string two = "run pretrain_gpt.py --world-size 8 --bf16" + kModel +
                          "\nrun pretrain_gpt.py --seq-length 2048 --micro-batch-size 4\n";
  EXPECT_EQ(imported(two).command, "line 1 (pretrain_gpt.py); left out: line 2 (pretrain_gpt.py)");
  EXPECT_EQ(imported(two, {{"command", "2"}}).command,
            "line 2 (pretrain_gpt.py); left out: line 1 (pretrain_gpt.py)");
}

TEST(LaunchScript, AsksForAllVariablesAtOnce) {
  const std::string text =
      "PP=$2\nTP=$3\ntorchrun --nproc_per_node $GPUS pretrain_gpt.py --bf16 "
      "--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --num-layers $LAYERS "
      "--hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups $GQA "
      "--seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 "
      "--global-batch-size 64 --save $DIR --hidden-dropout 0 --attention-dropout 0";
  EXPECT_EQ(imported(text).missing,
            (std::vector<std::string>{
                "GPUS=...: nproc_per_node (line 3)", "3=...: tensor_model_parallel_size (line 3)",
                "2=...: pipeline_model_parallel_size (line 3)", "LAYERS=...: num_layers (line 3)",
                "GQA=...: num_query_groups (line 3)"}));
  const Scenario scenario = read(
      imported(text, {{"GPUS", "8"}, {"2", "4"}, {"TP", "2"}, {"LAYERS", "32"}, {"GQA", "8"}}));
  EXPECT_EQ(scenario.parallel.pipeline, 4);
  EXPECT_EQ(scenario.parallel.tensor, 2);
  EXPECT_EQ(scenario.modelled->model.num_query_groups, 8);
}

TEST(LaunchScript, AsksForTheConditionBehindASetting) {
  const std::string text =
      "if [ $SIZE = 7B ]; then L=28; else L=80; fi\n"
      "if [ $KIND = moe ]; then O=\"--num-experts 8\"; else O=\"--lr 3\"; fi\n"
      "if [ $LOGS = yes ]; then O2=\"--log-interval 1\"; fi\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 " +
      kModel + " --num-layers $L $O $O2\n";
  EXPECT_EQ(
      imported(text).missing,
      (std::vector<std::string>{"KIND=...: num_experts (line 2); compared with moe",
                                "SIZE=...: num_layers (line 4: 28 or 80); compared with 7B"}));
  const Given given{{"SIZE", "7B"}, {"KIND", "dense"}};
  EXPECT_EQ(read(imported(text, given)).modelled->model.num_layers, 28);
}

TEST(LaunchScript, NamesTheValuesThatAConditionKnows) {
  const std::string text =
      "ENV=$1\nif [ $ENV = dsw ]; then N=8; elif [ \"$ENV\" == dlc ]; then N=16; fi\n"
      "case $2 in\n7B|8B) L=32;;\n7*) L=80;;\n*) L=48;;\nesac\n"
      "torchrun --nproc_per_node $N pretrain_gpt.py --bf16" +
      kModel + "--num-layers $L\n";
  EXPECT_EQ(imported(text).missing,
            (std::vector<std::string>{
                "1=...: nproc_per_node (line 8: 8 or 16); compared with dsw, dlc",
                "2=...: num_layers (line 8: 32 or 80 or 48); compared with 7B, 8B"}));
  EXPECT_EQ(read(imported(text, {{"1", "dlc"}, {"2", "8B"}})).parallel.data, 16);
}

TEST(LaunchScript, AsksForWhatOneBranchNeedsInTheSameList) {
  const std::string text =
      "if [ $1 = dsw ]; then N=8; else N=$GPUS; fi\n"
      "torchrun --nproc_per_node $N pretrain_gpt.py --bf16" +
      kModel;
  EXPECT_EQ(
      imported(text).missing,
      (std::vector<std::string>{"1=...: nproc_per_node (line 2: 8 or $GPUS); compared with dsw",
                                "GPUS=...: nproc_per_node (line 2: 8 or $GPUS)"}));
  EXPECT_EQ(read(imported(text, {{"1", "dsw"}, {"GPUS", "4"}})).parallel.data, 8);
  EXPECT_EQ(read(imported(text, {{"1", "dlc"}, {"GPUS", "4"}})).parallel.data, 4);
}

TEST(LaunchScript, AsksForALengthOfSamples) {
  const std::string run = "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 ";
  const std::string model =
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --vocab-size 128256 "
      "--micro-batch-size 1 --global-batch-size 64 ";
  EXPECT_EQ(imported(run + model + "--position-embedding-type rotary").missing,
            std::vector<std::string>{"seq_length=N"});
  // Learned positions say how many tokens a sample has.
  EXPECT_TRUE(imported(run + model + "--max-position-embeddings 2048").missing.empty());
}

TEST(LaunchScript, TakesSizesFromTheJob) {
  const std::string command = "python pretrain_gpt.py --bf16" + kModel;
  const std::string job = "#SBATCH --nodes=16\n#SBATCH --gpus-per-node=8\n";
  EXPECT_EQ(read(imported(job + "srun " + command + " --global-batch-size 128")).parallel.data,
            128);
  EXPECT_EQ(read(imported("srun -N 2 --ntasks-per-node=8 " + command)).parallel.data, 16);
  EXPECT_EQ(read(imported("mpirun -np 32 " + command)).parallel.data, 32);
}

TEST(LaunchScript, TakesTheOnlyListOfArguments) {
  const Draft draft = imported(
      "MODEL_ARGS=(\n --num-layers 48\n --hidden-size 2048\n"
      " --num-attention-heads 32\n --vocab-size 151936\n)\n");
  EXPECT_NE(scenario_of(draft).find("num_layers: 48"), std::string::npos);
  EXPECT_NE(summary_of(draft).find("MODEL_ARGS has its arguments"), std::string::npos);
}

TEST(LaunchScript, StopsAtSettingsThatChangeTheAnswer) {
  const std::string run = "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16" + kModel;
  Draft draft = imported(run +
                         "--mlp-swap 2 --train_type qlora --my-favourite 3 "
                         "--experimental-attention-variant dsa --log-layers 2");
  EXPECT_EQ(stops_of(draft),
            (std::vector<std::string>{"experimental_attention_variant", "train_type", "mlp_swap"}));
  EXPECT_NE(summary_of(draft).find("not understood: mlp_swap 2 (line 1)"), std::string::npos)
      << summary_of(draft);
  EXPECT_NE(summary_of(draft).find("unknown: 2 settings"), std::string::npos) << summary_of(draft);
  EXPECT_EQ(accept({"train_type", "bf16"}, draft), std::vector<std::string>{"bf16"});
  EXPECT_EQ(draft.stops.size(), 2U);
}

TEST(LaunchScript, IsInFp32UnlessItSaysAnotherPrecision) {
  const std::string run = "torchrun --nproc_per_node 8 pretrain_gpt.py" + kModel;
  EXPECT_NE(scenario_of(imported(run)).find("precision: fp32"), std::string::npos);
  EXPECT_NE(scenario_of(imported(run, {{"fp16", "true"}})).find("precision: fp16"),
            std::string::npos);
}

TEST(LaunchScript, RefusesNamesBesideItThatAreNothing) {
  const std::string run = "torchrun --nproc_per_node $N pretrain_gpt.py --bf16" + kModel;
  EXPECT_EQ(stops_of(imported(run, {{"N", "8"}, {"NODES", "3"}})),
            std::vector<std::string>{"NODES"});
  EXPECT_THROW((void)imported(run, {{"N", "8"}, {"model", "llama3-405b"}}), InputError);
}

// The text of a branch may begin with a line's end; what a value within it needs is asked for too.
TEST(LaunchScript, AsksForOptionsThatABranchDecides) {
  const std::string text =
      "if [ $PR = bf16 ]; then\n  precision=\" \\\n --bf16\"\n"
      "elif [ $PR = fp16 ]; then\n  precision=\" \\\n --fp16\"\nfi\n"
      "if [ $GQA = true ]; then\n groups=\" --group-query-attention --num-query-groups $1\"\nfi\n"
      "run pretrain_gpt.py --world-size 8" +
      kModel + "--save x ${precision} ${groups}\n";
  const Draft draft = imported(text);
  std::string missing;
  for (const std::string& line : draft.missing) missing += line + "\n";
  EXPECT_NE(missing.find("PR=...: bf16, fp16"), std::string::npos) << missing;
  EXPECT_NE(missing.find("1=...: num_query_groups"), std::string::npos) << missing;
  const Scenario scenario = read(imported(text, {{"PR", "bf16"}, {"GQA", "true"}, {"1", "8"}}));
  EXPECT_EQ(scenario.modelled->model.num_query_groups, 8);
  EXPECT_EQ(scenario.modelled->context.precision, Precision::kBf16);
}

TEST(LaunchScript, ReadsVariablesOfArgumentsWithoutACommand) {
  const Draft draft =
      imported("MODEL=\"\\\n --bf16 --world-size 8 " + kModel + "\"\nRUN=\" --seed 1\"\n");
  EXPECT_EQ(read(draft).modelled->model.num_layers, 32);
}

TEST(LaunchScript, RefusesCommandsThatDoNotTrain) {
  EXPECT_THROW((void)imported("python tasks/evaluate.py --bf16" + kModel), InputError);
  for (const char* program : {"pretrain_vlm", "train_rl", "pretrain_mimo"}) {
    EXPECT_THROW(
        (void)imported("run " + std::string(program) + ".py --world-size 8 --bf16" + kModel),
        InputError)
        << program;
  }
  EXPECT_TRUE(
      imported("run /x/pretrain_t5/pretrain_gpt.py --world-size 8 --bf16" + kModel).stops.empty());
}

TEST(LaunchScript, RefusesProgramsOfOtherArguments) {
  EXPECT_THROW((void)imported("python3 -m verl.trainer.main_ppo trainer.nnodes=2\n"), InputError);
  EXPECT_THROW((void)imported("python analyze_data.py" + kModel), InputError);
  EXPECT_THROW(
      (void)imported("python train.py --rollout-batch-size 8" + kModel, {{"model", "llama3-8b"}}),
      InputError);
}

TEST(LaunchScript, RefusesModelsOfOtherKindsByName) {
  try {
    (void)imported("run $DIR/pretrain_vlm.py --world-size 8 --bf16" + kModel);
    FAIL() << "VLM is no decoder";
  } catch (const InputError& error) {
    EXPECT_TRUE(error.message().starts_with("$DIR/pretrain_vlm.py is of")) << error.message();
  }
  const std::string run = "run pretrain_gpt.py --world-size 8 --bf16" + kModel;
  EXPECT_THROW((void)imported("run pretrain_retro.py --world-size 8 --bf16" + kModel), InputError);
  EXPECT_THROW((void)imported(run + "--retro-add-retriever"), InputError);
  EXPECT_FALSE(imported(run + "--decoder-num-layers 12").stops.empty());
  EXPECT_THROW((void)imported(run + "--export-kd-teacher-load t"), InputError);
}

TEST(LaunchScript, PassesAChecksEndOfTheScript) {
  const std::string text =
      "MASTER=${MASTER:-}\nif [ -z \"$MASTER\" ]; then\n  exit 1\nfi\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16" +
      kModel;
  const Draft draft = imported(text);
  EXPECT_EQ(read(draft).batch.seq_length, 4096);
  EXPECT_EQ(draft.notes.at(0), "the check of line 2, which ends the script, is passed");
  const Draft other =
      imported("SIZE=7B\nif [ $SIZE = 7B ]; then\n" + text.substr(text.find("torch")) +
               "\nexit\nfi\ntorchrun pretrain_gpt.py --num-layers 2\n");
  EXPECT_EQ(read(other).modelled->model.num_layers, 32);
}

TEST(LaunchScript, TakesAPlaceholderAsOneValue) {
  const Draft draft = imported(
      "python pretrain_gpt.py --world-size 8 --vocab-file <PATH TO VOCAB> --bf16 --load <DIR>/gpt" +
      kModel);
  EXPECT_NE(scenario_of(draft).find("precision: bf16"), std::string::npos);
  EXPECT_EQ(read(imported("python pretrain_gpt.py --world-size 8 --bf16" + kModel +
                          " <in >out --num-layers 3\n"))
                .modelled->model.num_layers,
            3);
}

TEST(LaunchScript, RecomputesLayersByAMethodAlone) {
  const std::string text = "run pretrain_gpt.py --world-size 8 --bf16" + kModel;
  const auto recompute_of = [](const Draft& draft) { return draft.recompute; };
  EXPECT_EQ(recompute_of(imported(text + "--activations-checkpoint-method uniform")), "full");
  EXPECT_EQ(recompute_of(imported(text + "--activations-checkpoint-method block "
                                         "--activations-checkpoint-num-layers 2")),
            "{granularity: full, method: block, num_layers: 2}");
}

TEST(LaunchScript, TakesMegatronDeepSpeedsSettings) {
  const std::string text = "deepspeed pretrain_gpt.py --deepspeed --world-size 8 --fp16" + kModel;
  const Scenario ulysses = read(
      imported(text + "--use-flash-attn-v2 --no-pipeline-parallel --ds-sequence-parallel-size 4 "
                      "--num-key-value-heads 8"));
  EXPECT_EQ(ulysses.parallel.context, 4);
  EXPECT_EQ(ulysses.modelled->model.num_query_groups, 8);
  EXPECT_EQ(stops_of(imported(text + "--no-pipeline-parallel --pipeline-model-parallel-size 2")),
            std::vector<std::string>{"no_pipeline_parallel"});
  EXPECT_EQ(imported(text + "--pipeline-model-parallel-size 2 --enable-zbh1-pipeline").schedule,
            "zb-h1");
  const std::string experts = text + "--moe-expert-parallel-size 2 --topk 1 --num-experts ";
  EXPECT_NE(
      scenario_of(imported(experts + "8 --moe-train-capacity-factor 1.25 --moe-min-capacity 4"))
          .find("capacity_factor: 1.25"),
      std::string::npos);
  EXPECT_EQ(stops_of(imported(experts + "8 8 16 16")), std::vector<std::string>{"num_experts"});
}

TEST(LaunchScript, PutsDeepSpeedsOptimizerOnTheHost) {
  const std::string text = "deepspeed pretrain_gpt.py --deepspeed --world-size 8 --bf16" + kModel;
  EXPECT_EQ(read(imported(text + "--cpu-optimizer")).modelled->state.optimizer.host_fraction, 1);
  EXPECT_EQ(read(imported(text)).modelled->state.optimizer.host_fraction, 0);
}

TEST(LaunchScript, StopsAtLayersOfOtherPrecisionsAndALossInParts) {
  const std::string run = "run pretrain_gpt.py --world-size 8 --bf16" + kModel;
  EXPECT_EQ(stops_of(imported(run + "--num-layers-at-end-in-bf16 14")),
            std::vector<std::string>{"num_layers_at_end_in_bf16"});
  EXPECT_EQ(stops_of(imported(run + "--loss-compute-mode chunk --loss-chunk-size 1024")),
            std::vector<std::string>{"loss_compute_mode"});
  EXPECT_TRUE(imported(run + "--loss-compute-mode default --loss-chunk-size 1024").stops.empty());
}

TEST(LaunchScript, KnowsWhatMsSwiftHasWithoutASetting) {
  const std::string text =
      "NPROC_PER_NODE=8 megatron sft --model a/b --max_length 2048 --packing true --merge_lora "
      "true "
      "--micro_batch_size 1 --global_batch_size 16 --tensor_model_parallel_size 2 ";
  const Given given{{"world_size", "8"}, {"model", "llama3-8b"}};
  const Draft draft = imported(text, given);
  EXPECT_EQ(draft.recompute, "[core_attn]");
  const Modelled made = *read(draft).modelled;
  EXPECT_EQ(made.context.seq_length, 2048);
  EXPECT_EQ(made.context.precision, Precision::kBf16);
  EXPECT_FALSE(made.context.dropout);
  EXPECT_TRUE(made.state.distributed_optimizer);
  EXPECT_EQ(imported(text + "--recompute_granularity none", given).recompute, "");
}

TEST(LaunchScript, ReadsBertsProgramAsAModelThatSeesBothSides) {
  const std::string flags = " --world-size 8 --bf16 --tokenizer-type BertWordPieceLowerCase";
  const Draft draft = imported("run pretrain_bert.py" + flags + kModel);
  EXPECT_TRUE(read(draft).modelled->model.bidirectional);
  EXPECT_FALSE(read(draft).modelled->context.causal);
  const std::string pieces = " --world-size 8 --bf16 --vocab-file v.json";
  EXPECT_FALSE(
      read(imported("run pretrain_gpt.py" + pieces + kModel)).modelled->model.bidirectional);
  EXPECT_EQ(stops_of(imported("run train.py" + flags + kModel)),
            std::vector<std::string>{"tokenizer_type"});
}

TEST(LaunchScript, TakesOptionsThatAreCutShort) {
  const std::string flags =
      "run pretrain_gpt.py --bf16 --world-size 8 --pipeline-model-parallel-size 2" + kModel;
  EXPECT_EQ(read(imported(flags + "--num-layers-per-virtual-pipeline-stag 4")).schedules[0].chunks,
            4);
  EXPECT_EQ(stops_of(imported(flags + "--moe-router-tokens-fp8 4")),
            std::vector<std::string>{"moe_router_tokens_fp8"});
}

TEST(LaunchScript, NamesNumbersThatAreComparedWith) {
  const Draft draft = imported(
      "if [[ $BATCH -eq 0 ]]; then S=64; else S=128; fi\nrun pretrain_gpt.py --bf16 --world-size "
      "8" +
      kModel + "--global-batch-size $S");
  EXPECT_NE(summary_of(draft).find("compared with 0"), std::string::npos) << summary_of(draft);
}

// Its bf16 optimizer divides states though the stage is 0.
TEST(LaunchScript, DividesStatesUnderDeepSpeedInBf16) {
  const auto divided = [](const std::string& flags) {
    const std::string run =
        "run pretrain_gpt.py --deepspeed --zero-stage 0 --world-size 8" + kModel;
    return read(imported(run + flags)).modelled->state.distributed_optimizer;
  };
  EXPECT_TRUE(divided("--bf16"));
  EXPECT_FALSE(divided("--fp16"));
}

// The program that takes word pieces by default is BERT's.
TEST(LaunchScript, KnowsBertByItsVocabulary) {
  const auto sees_all = [](const std::string& flags) {
    const Settings settings =
        read_arguments("run.sh", "--bf16 --world-size 8 --vocab-file v.txt" + kModel + flags);
    return read(megatron_draft(settings, "dgx-h100")).modelled->model.bidirectional;
  };
  EXPECT_TRUE(sees_all(""));
  EXPECT_FALSE(sees_all("--merge-file m.txt"));
  EXPECT_FALSE(sees_all("--tokenizer-type GPT2BPETokenizer"));
}

// Megatron-LLM of epfLLM: no biases and no flash attention unless it is told.
TEST(LaunchScript, TakesMegatronLlmsFlags) {
  const auto of = [](const std::string& flags) {
    const std::string run =
        "launcher -p 8 -c 'python finetune.py --bf16 --world_size 8 --use_rms_norm "
        "--glu_activation "
        "swiglu "
        "--no_tie_embed_logits --num_attention_heads_kv 8 --position_embedding_type rotary ";
    return read(imported(run + flags + kModel + "'"));
  };
  const Scenario scenario = of("");
  const Transformer& model = scenario.modelled->model;
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_EQ(model.num_query_groups, 8);
  EXPECT_EQ(model.ffn_hidden_size, 4 * 4096);
  EXPECT_TRUE(model.gated_mlp && !model.tied_embeddings && !model.linear_bias);
  EXPECT_FALSE(scenario.modelled->context.flash_attention);
  EXPECT_TRUE(of("--use_bias").modelled->model.linear_bias);
  EXPECT_TRUE(of("--use_flash_attn").modelled->context.flash_attention);
}

TEST(LaunchScript, RefusesToAnswerAndStopsAtModelsOfOtherTools) {
  EXPECT_EQ(stops_of(imported(
                "run pretrain_gpt.py --world-size 8 --bf16 --fsdp2-config-path f.yaml" + kModel)),
            std::vector<std::string>{"fsdp2_config_path"});
  EXPECT_THROW((void)imported("run tasks/msdp/main.py --sample-output-file o.txt" + kModel),
               InputError);
  const std::string flags = "run finetune.py --bf16 --world-size 8" + kModel;
  EXPECT_EQ(stops_of(imported(flags + "--export-te-mcore-model")),
            std::vector<std::string>{"export_te_mcore_model"});
}

}  // namespace
}  // namespace pipesim::launch_scripts_test
