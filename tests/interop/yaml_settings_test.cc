// Configurations in YAML as settings: their sections, names and interpolations.
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::yaml_settings_test {
namespace {

Settings settings_of(const std::string& text, const Given& given = {}, const Given& files = {}) {
  return read_yaml_settings("megatron", "c.yaml", text, given,
                            [&](const std::string& path) -> std::optional<std::string> {
                              const auto found = files.find(path);
                              if (found == files.end()) return std::nullopt;
                              return found->second;
                            });
}

std::string value(const std::string& text, const char* name, const Given& given = {},
                  const Given& files = {}) {
  Settings settings = settings_of(text, given, files);
  return settings.text({name}).value_or("-");
}

const std::string kModel = "num_layers: 4\nhidden_size: 64\nnum_attention_heads: 4\n";

void expect_values(const std::string& text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, said] : values) EXPECT_EQ(value(text, name.c_str()), said) << name;
}

TEST(YamlSettings, ReadsKeysWithDashesAndTheLastOfEqualOnes) {
  const std::string text =
      "ENV_VARS: {NUM_LAYERS: 3}\nMODEL_ARGS:\n  --num-layers: 24\n  --num-layers: 32\n  --bf16: "
      "true\n  trainer.strategy.tensor_model_parallel_size: 2\nTEST_TYPE: regular\nworld_size: 8\n";
  EXPECT_EQ(value(text, "num_layers"), "32");
  EXPECT_EQ(value(text, "tensor_model_parallel_size"), "2");
  EXPECT_EQ(value(text, "TEST_TYPE"), "-");
  EXPECT_EQ(value(text, "world_size"), "8");
}

TEST(YamlSettings, LeavesASectionItsOwnLeaves) {
  const std::string text =
      "dataset: {sequence_length: 1024}\nddp: {overlap_param_gather: true}\n"
      "model: {seq_length: 131072, tokenizer: {num_layers: 3}, num_layers: 16,\n"
      "  attention_backend: {_args_: [5], _call_: true, _target_: megatron.AttnBackend},\n"
      "  optim: {name: distributed_fused_adam, lr: 1}}\n"
      "optimizer: {overlap_param_gather: false}\nexp_manager: {model_parallel_size: 7}\n";
  expect_values(text, {{"seq_length", "1024"},
                       {"overlap_param_gather", "true"},
                       {"num_layers", "16"},
                       {"model_parallel_size", "-"},
                       {"attention_backend", "AttnBackend.auto"},
                       {"use_distributed_optimizer", "true"}});
}

// FlagScale: a file of the run names that of the training, and the program of both.
TEST(YamlSettings, FollowsTheTrainingOfARunAndKnowsItsProgram) {
  const std::string run =
      "defaults:\n  - _self_\n  - train: small\nexperiment:\n  task: {type: train, entrypoint: "
      "flagscale/train/train_gpt.py}\n  runner: {nnodes: 2, nproc_per_node: 8}\n";
  const std::string training =
      "system: {tensor_model_parallel_size: 2}\nmodel: {num_layers: 4, hidden_size: 64, "
      "num_attention_heads: 4}\ndata: {tokenizer: {tokenizer_type: A, vocab_size: 1000, "
      "make_vocab_size_divisible_by: 64}}\n";
  const Given files{{"train/small.yaml", training}};
  EXPECT_EQ(value(run, "num_layers", {}, files), "4");
  EXPECT_EQ(value(run, "nnodes", {}, files), "2");
  EXPECT_EQ(value(run, "program", {}, files), "flagscale/train/train_gpt.py");
  EXPECT_EQ(value(run, "vocab_size", {}, files), "1000");
  EXPECT_EQ(value(run, "make_vocab_size_divisible_by", {}, files), "64");
  const std::string folder = std::filesystem::current_path().filename().string();
  const auto program = [&](const char* name) {
    const std::string above = "defaults: [{train: small}]\nexperiment: {task: {entrypoint: train_" +
                              std::string(name) + ".py}}\n";
    return settings_of(training, {}, {{"../" + folder + ".yaml", above}});
  };
  EXPECT_NO_THROW(program("gpt").refuse_other_models());
  EXPECT_THROW(program("rwkv").refuse_other_models(), InputError);
  // Away from the run's file.
  EXPECT_NO_THROW(settings_of(training));
  EXPECT_THROW(settings_of("system: {tensor_model_parallel_size: 1}\nmodel: {num_layers: 4}\n"
                           "data: {tokenizer: {tokenizer_path: words}}\n"),
               InputError);
}

// A model of another library, and a file that starts containers.
TEST(YamlSettings, RefusesFilesThatSayNothingOfATraining) {
  const auto check = [](const char* text) { settings_of(text).refuse_other_files(); };
  EXPECT_NO_THROW(check("train: {global_batch_size: 8}\n"));
  EXPECT_THROW(
      check("model: {config: {use_embedding: true}}\ntrainer: {config: {batch_size: 8}}\n"),
      InputError);
  EXPECT_THROW(check("kind: Job\nspec: {template: {replicas: 1}}\n"), InputError);
}

TEST(YamlSettings, ResolvesInterpolations) {
  const std::string text =
      "model:\n  hidden_size: 4096\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"
      "  kv_channels: ${divide:${model.hidden_size}, 32}\n  seq_length: ${PRIMUS_SEQ:4096}\n"
      "  num_layers: ${LAYERS}\n  micro_batch_size: ${oc.env:MBS,2}\n";
  expect_values(text,
                {{"ffn_hidden_size", "16384"}, {"kv_channels", "128"}, {"seq_length", "4096"}});
  EXPECT_EQ(value(text, "seq_length", {{"PRIMUS_SEQ", "8192"}}), "8192");
  EXPECT_EQ(value(text, "micro_batch_size"), "2");
  EXPECT_EQ(value(text, "num_layers", {{"LAYERS", "12"}}), "12");
  Settings settings = settings_of(text);
  EXPECT_FALSE(settings.number({"num_layers"}));
  ASSERT_EQ(settings.asked().size(), 1U);
  EXPECT_EQ(settings.asked()[0].names, std::vector<std::string>{"LAYERS"});
  EXPECT_EQ(value("a: ${.b}\nb: ${.a}\n", "a").empty(), false);  // comes to an end
}

TEST(YamlSettings, FollowsTheFilesOfAnExperiment) {
  const std::string text =
      "modules:\n  pre_trainer:\n    config: pre.yaml\n    model: ${PRIMUS_MODEL:m}.yaml\n"
      "    overrides: {num_layers: 8}\nworld_size: 8\n";
  const Given files{
      {"m.yaml", "extends: [base.yaml]\nhidden_size: 512\nnum_layers: 4\n"},
      {"base.yaml", "hidden_size: 64\nswiglu: true\n"},
      {"pre.yaml", "bf16: true\npatch_zero_bubble: false\nenable_zero_bubble: true\n"}};
  EXPECT_EQ(value(text, "num_layers", {}, files), "8");
  EXPECT_EQ(value(text, "hidden_size", {}, files), "512");
  EXPECT_EQ(value(text, "swiglu", {}, files), "true");
  EXPECT_EQ(megatron_draft(settings_of(text, {}, files), "").schedule, "1f1b");
  EXPECT_EQ(settings_of(text).notes().size(), 2U);
}

TEST(YamlSettings, StopsAtAnotherModelInTheModel) {
  const Draft draft = megatron_draft(
      settings_of("model: {mm_cfg: {llm: {num_layers: 3}}, num_layers: 4, peft: {peft_scheme: "
                  "lora, lora_tuning: {adapter_dim: 32}}, freeze_llm: false}\n"),
      "");
  ASSERT_EQ(draft.stops.size(), 1U) << summary_of(draft);
  EXPECT_EQ(draft.stops[0].first, "mm_cfg.llm.num_layers");
}

TEST(YamlSettings, TakesTheAdaptersThatNemoNames) {
  const std::string text =
      "model: {peft: {peft_scheme: SCHEME, adapter_tuning: {adapter_dim: 8}, lora_tuning: "
      "{adapter_dim: 32}}}\n";
  const auto with = [&](const std::string& scheme) {
    std::string said = text;
    said.replace(said.find("SCHEME"), 6, scheme);
    return megatron_draft(settings_of(said), "");
  };
  EXPECT_NE(
      scenario_of(
          megatron_draft(
              settings_of("model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, peft: "
                          "{peft_scheme: lora, lora_tuning: {adapter_dim: 32}}}\n"),
              ""))
          .find("lora_rank: 32"),
      std::string::npos);
  EXPECT_NE(scenario_of(megatron_draft(settings_of("model: {num_layers: 4, hidden_size: 64, "
                                                   "num_attention_heads: 4}\npeft: {_target_: "
                                                   "megatron.bridge.peft.lora.LoRA, dim: 8}\n"),
                                       ""))
                .find("lora_rank: 8"),
            std::string::npos);
  EXPECT_TRUE(with("null").stops.empty());
  ASSERT_EQ(with("ptuning").stops.size(), 1U);
  EXPECT_EQ(with("ptuning").stops[0].first, "peft_scheme");
}

TEST(YamlSettings, TakesPrimusAdaptersUnlessTheyAreOff) {
  const auto scenario = [](const std::string& enabled) {
    return scenario_of(
        megatron_draft(settings_of(kModel + "lora: {enabled: " + enabled + ", dim: 8}\n"), ""));
  };
  EXPECT_NE(scenario("true").find("lora_rank: 8"), std::string::npos);
  EXPECT_EQ(scenario("false").find("lora_rank"), std::string::npos);
  const Draft unsized = megatron_draft(settings_of(kModel + "lora: {enabled: true, r: 8}\n"), "");
  ASSERT_EQ(unsized.stops.size(), 1U);
  EXPECT_EQ(unsized.stops[0].first, "lora");
}

// NeMo's weights are in fp32 unless megatron_amp_O2 is set; FSDP casts before it gathers.
TEST(YamlSettings, KeepsNemosWeightsInFp32UnderAutocast) {
  const auto autocast = [](const std::string& trainer, const std::string& more) {
    const std::string text = "trainer: {" + trainer +
                             "}\nmodel: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, " +
                             more + "}\n";
    const Draft draft = megatron_draft(settings_of(text), "");
    EXPECT_TRUE(draft.stops.empty()) << summary_of(draft);
    return scenario_of(draft).find("autocast: true") != std::string::npos;
  };
  const std::string lora = ", peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 32}}";
  EXPECT_TRUE(autocast("precision: bf16", "megatron_amp_O2: False" + lora));
  EXPECT_TRUE(autocast("precision: bf16", "bias: false"));
  EXPECT_FALSE(autocast("precision: bf16", "megatron_amp_O2: True" + lora));
  EXPECT_FALSE(autocast("precision: 32", "bias: false"));
  EXPECT_FALSE(autocast("precision: bf16", "fsdp: true"));
  EXPECT_EQ(value("model: {num_layers: 4}\n", "megatron_amp_O2"), "-") << "no file of NeMo's";
}

TEST(YamlSettings, TakesTheLengthOfNemosTrainingData) {
  const std::string data = "data: {train_ds: {max_seq_length: 2048, micro_batch_size: 7}}";
  EXPECT_EQ(value("model:\n  encoder_seq_length: ${peft.model.data.train_ds.max_seq_length}\n  " +
                      data + "\n",
                  "encoder_seq_length"),
            "2048");
  const Draft draft = megatron_draft(settings_of("model: {" + data + "}\n"), "");
  EXPECT_NE(scenario_of(draft).find("seq_length: 2048"), std::string::npos);
  EXPECT_EQ(scenario_of(draft).find("micro_batch_size: 7"), std::string::npos);
  EXPECT_THROW((void)megatron_draft(
                   settings_of("model: {data: {train_ds: {max_tgt_seq_length: 128}}}\n"), ""),
               InputError)
      << "T5's";
}

TEST(YamlSettings, RefusesReinforcementLearningAndRetrieval) {
  for (const char* text :
       {"grpo: {num_prompts_per_step: 32}\npolicy: {train_global_batch_size: 512, "
        "megatron_cfg: {tensor_model_parallel_size: 2, bf16: true}}\n",
        "name: megatron_retro\nmodel: {num_layers: 4}\n",
        "name: megatron_llama_distill\nmodel: {num_layers: 4}\n"}) {
    EXPECT_THROW(settings_of(text).refuse_other_models(), InputError) << text;
  }
}

// Files of Megatron-Bridge override a recipe: bf16, no dropout, optimizer states that are divided,
// and LoRA beside a rank of adapters.
TEST(YamlSettings, TakesWhatBridgesRecipesHave) {
  const std::string text =
      "train: {micro_batch_size: 2}\nmodel: {seq_length: 64}\npeft: {dim: 8}\n";
  expect_values(text, {{"mixed_precision", "bf16_mixed"},
                       {"peft", "lora"},
                       {"dim", "8"},
                       {"hidden_dropout", "0"},
                       {"use_distributed_optimizer", "true"},
                       {"overlap_grad_reduce", "-"}});
  expect_values("train: {micro_batch_size: 2}\nmodel: {hidden_dropout: 0.2}\n",
                {{"hidden_dropout", "0.2"}, {"overlap_grad_reduce", "true"}});
  EXPECT_EQ(value("train: {a: 2}\nmodel: {b: 1}\nddp: {use_distributed_optimizer: false}\n",
                  "overlap_param_gather"),
            "-");
  EXPECT_EQ(value("train: {train_iters: 2}\nmodel: {bf16: false}\n", "mixed_precision"), "-");
  EXPECT_EQ(value("model: {seq_length: 64}\n", "mixed_precision"), "-");
  expect_values("recipe: qwen.qwen3\nseq_length: 64\n",
                {{"mixed_precision", "bf16_mixed"}, {"use_distributed_optimizer", "true"}});
}

TEST(YamlSettings, TakesPrimusDispatcherBesideAFlagThatIsOff) {
  const auto deepep = [](const std::string& text) {
    Settings settings = settings_of(text);
    rename_primus_settings(settings);
    return settings.seen("moe_enable_deepep");
  };
  const std::string off = "moe_enable_deepep: false\nuse_turbo_deepep: true\n";
  EXPECT_EQ(deepep(off + "enable_primus_turbo: true\n"), "true");
  EXPECT_EQ(deepep(off + "enable_primus_turbo: false\n"), "false");
  EXPECT_EQ(deepep("turbo_sync_free_moe_stage: 2\nenable_primus_turbo: true\n"), "true");
}

// Primus' stack is pairs of a mixer and an MLP, whose specification says the mixer.
TEST(YamlSettings, TakesPrimusHybridStacks) {
  const auto draft = [](const std::string& stack, const std::string& more) {
    return megatron_draft(
        settings_of("model_type: mamba\nis_hybrid_model: true\nnum_layers: 16\nhidden_size: 128\n"
                    "num_attention_heads: 4\nlinear_num_value_heads: 2\nlinear_value_head_dim: 32\n"
                    "linear_num_key_heads: 2\nlinear_key_head_dim: 16\nspec: [primus.models."
                    "hybrid_mamba_mla_layer_specs, " +
                    stack + "]\n" + more),
        "");
  };
  const auto has = [](const Draft& said, const std::string& line) {
    return scenario_of(said).find(line + "\n") != std::string::npos;
  };
  const Draft mamba = draft("hybrid_stack_spec", "hybrid_attention_ratio: 0.25\n");
  EXPECT_TRUE(mamba.stops.empty()) << summary_of(mamba);
  EXPECT_TRUE(has(mamba, "layer_pattern: \"*-M-M-M-\""));
  EXPECT_TRUE(has(mamba, "kind: mamba2"));
  EXPECT_TRUE(has(mamba, "num_heads: 2")) << "as wide as the model, not twice";
  EXPECT_TRUE(has(draft("hybrid_stack_spec", "hybrid_attention_ratio: 0.75\n"),
                  "layer_pattern: \"*-*-*-*-*-M-*-M-\""));
  const Draft delta = draft("gdn_hybrid_stack_spec", "");
  EXPECT_TRUE(has(delta, "layer_pattern: \"M-\"") && has(delta, "kind: gated_delta"));
  const Draft kimi = draft("kda_hybrid_stack_spec_no_te", "hybrid_override_pattern: \"*-M-M-\"\n");
  EXPECT_TRUE(kimi.stops.empty()) << summary_of(kimi);
  EXPECT_TRUE(has(kimi, "layer_pattern: \"*-M-M-\"") && has(kimi, "kind: kda"));
  EXPECT_TRUE(has(kimi, "step_rank: 32") && has(kimi, "gate_rank: 32"));
  EXPECT_FALSE(draft("hybrid_stack_spec", "hybrid_attention_ratio: 1.5\n").stops.empty());
}

// Settings given beside the file stand in place of the file's, also where Primus' names are read.
TEST(YamlSettings, ReadsPrimusNamesOfWhatIsGiven) {
  Settings settings = settings_of(
      "model_type: mamba\nnum_layers: 16\nhidden_size: 128\nnum_attention_heads: 4\n"
      "linear_num_value_heads: 2\nlinear_value_head_dim: 32\nlinear_num_key_heads: 2\n"
      "linear_key_head_dim: 16\nhybrid_attention_ratio: 0.25\n"
      "spec: [primus.models.hybrid_mamba_mla_layer_specs, hybrid_stack_spec]\n");
  settings.give("num_layers", "8", {});
  const std::string text = scenario_of(megatron_draft(std::move(settings), ""));
  EXPECT_NE(text.find("num_layers: 8\n"), std::string::npos) << text;
  EXPECT_NE(text.find("layer_pattern: \"*-M-M-M-\"\n"), std::string::npos) << text;
}

// Kimi K3's layers and LFM2's, which have keys of Primus' own.
TEST(YamlSettings, TakesPrimusKimiAndShortConvolutions) {
  const auto text = [](const std::string& more) {
    const Draft draft = megatron_draft(
        settings_of("num_layers: 4\nhidden_size: 64\nnum_attention_heads: 4\n" + more), "");
    EXPECT_TRUE(draft.stops.empty()) << summary_of(draft);
    return scenario_of(draft);
  };
  const std::string kimi = text(
      "model_type: kimi_k3\nmla_use_nope: true\nmla_use_output_gate: true\nkda_chunk_size: 32\n"
      "kda_use_full_rank_gate: true\nattn_res_block_size: 2\nrouted_expert_hidden_size: 48\n"
      "num_experts: 8\nlinear_attention_freq: \"[1]*3+[0]\"\nlinear_value_head_dim: 16\n");
  for (const char* line :
       {"layer_pattern: \"RRRG\"", "kind: kda", "step_rank: 16", "chunk_size: 32",
        "residual_block: 2", "latent_size: 48", "attention_output_gate: true", "kv_lora_rank: 32",
        "position_embedding_type: none"}) {
    EXPECT_NE(kimi.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(kimi.find("gate_rank"), std::string::npos);
  const std::string lfm = text(
      "lfm_layer_types: [conv, conv, full_attention, conv]\n"
      "conv_L_cache: 3\n");
  for (const char* line : {"layer_pattern: \"RRG\"", "kind: short_conv", "num_heads: 4",
                           "head_size: 16", "conv_kernel: 3"}) {
    EXPECT_NE(lfm.find(line), std::string::npos) << line;
  }
}

// Whatever Megatron-FSDP keeps and sends in fp32 is what is simulated.
TEST(YamlSettings, TakesMegatronFsdpInFp32) {
  const auto stops = [](const std::string& type) {
    return megatron_draft(settings_of(kModel +
                                      "use_megatron_fsdp: true\n"
                                      "megatron_fsdp_main_params_dtype: fp32\n"
                                      "megatron_fsdp_grad_comm_dtype: " +
                                      type + "\n"),
                          "")
        .stops.size();
  };
  EXPECT_EQ(stops("fp32"), 0U);
  EXPECT_EQ(stops("bf16"), 1U);
}

// DeepSeek-V4 as Primus names it, beside Megatron-LM's heads.
TEST(YamlSettings, TakesPrimusCompressedAttention) {
  const std::string compressed =
      "model_type: deepseek_v4\nnum_layers: 4\nhidden_size: 64\nnum_attention_heads: 4\n"
      "kv_channels: 32\nqk_pos_emb_head_dim: 8\nq_lora_rank: 16\no_lora_rank: 16\no_groups: 2\n"
      "compress_ratios: \"[0, 4, 128, 4, 0]\"\nattn_sliding_window: 32\nattn_sink: true\nhc_mult: "
      "2\nuse_v4_csa_attention_backend: triton_v1\nuse_v4_attention_backend: ";
  const std::string text = scenario_of(megatron_draft(settings_of(compressed + "gluon\n"), ""));
  for (const char* line : {"layer_pattern: \"WXYX\"", "residual_streams: 2", "kv_channels: 32",
                           "attention_sinks: true", "num_query_groups: 1"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  const auto stops = megatron_draft(settings_of(compressed + "eager\n"), "").stops;
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].first, "enable_dsa_indexer");
}

TEST(YamlSettings, TakesTheModelOfANamedCheckpoint) {
  const Draft draft = megatron_draft(settings_of("hf_path: Qwen/Qwen3-8B\n"), "");
  EXPECT_EQ(draft.model_name, "qwen3-8b");
  EXPECT_EQ(megatron_draft(settings_of("hf_path: Qwen/Qwen3-9000B\n"), "").model_name, "");
}

TEST(YamlSettings, TakesHowNemosOptimizerExchanges) {
  const std::string text =
      "model:\n  transformer_engine: False\n  rotary_percentage: 0.5\n  optim: {name: "
      "mcore_distributed_optim, overlap_grad_sync: true, overlap_param_sync: false, "
      "grad_sync_dtype: \"${kind}\"}\nkind: fp32\n";
  expect_values(text, {{"overlap_grad_reduce", "true"},
                       {"overlap_param_gather", "false"},
                       {"grad_sync_dtype", "fp32"},
                       {"transformer_impl", "local"},
                       {"rotary_percent", "0.5"}});
  EXPECT_EQ(value("model: {optim: {name: lion}}\n", "optimizer"), "lion");
}

TEST(YamlSettings, LeaveOutWhatASwitchThatIsOffWouldSay) {
  const auto stops = [](const std::string& offloads) {
    return megatron_draft(settings_of("model: {cpu_offloading: " + offloads +
                                      ", cpu_offloading_num_layers: 95}\n"),
                          "")
        .stops.size();
  };
  EXPECT_EQ(stops("false"), 0U);
  EXPECT_EQ(stops("true"), 2U);
  const auto other = megatron_draft(
      settings_of("model: {enable_mhc_connections: true, profile: {enable: false}}\n"), "");
  EXPECT_EQ(other.stops.size(), 1U) << "a switch of another section";
}

// Learned prompts and heads of reward models are no training of the whole model.
TEST(YamlSettings, RefuseModelsOfAnotherKind) {
  for (const char* said : {"output_sequence: False", "unet: {attention_resolutions: [1, 2]}",
                           "vision_pretraining_type: mae"}) {
    EXPECT_THROW((void)megatron_draft(settings_of("model: {" + std::string(said) + "}\n"), ""),
                 InputError)
        << said;
  }
}

// A model that is named beside the file does not make it one.
TEST(YamlSettings, RefuseOtherModelsByTheFilesNameAndBesideAModel) {
  for (const char* of_another : {"name: megatron_t5_glue\n", "name: megatron_griffin\n",
                                 "model: {sample_rate: 16000}\n", "name: x\nrlhf_type: grpo\n"}) {
    Settings settings = settings_of(of_another + kModel);
    settings.give("model", "llama3-8b", {});
    EXPECT_THROW((void)megatron_draft(settings, "dgx-h100"), InputError) << of_another;
  }
}

TEST(YamlSettings, TakesNemosPromptsAndAdaptersAsAFrozenModel) {
  const auto draft_of = [](const std::string& model) {
    return megatron_draft(settings_of("trainer: {precision: bf16}\nmodel: {" + model +
                                      "}\nnum_layers: 4\n"
                                      "hidden_size: 64\nnum_attention_heads: 4\n"),
                          "dgx-h100");
  };
  const auto has = [](const Draft& draft, const char* words) {
    return scenario_of(draft).find(words) != std::string::npos;
  };
  EXPECT_TRUE(
      has(draft_of("virtual_prompt_style: p-tuning, p_tuning: {num_layers: 2}"), "lora_rank: 1\n"));
  EXPECT_TRUE(has(draft_of("virtual_prompt_style: no-prompts, adapter_tuning: {adapter_dim: 16}"),
                  "lora_rank: 16\n"));
  EXPECT_EQ(draft_of("virtual_prompt_style: inference").stops.at(0).first, "virtual_prompt_style");
  EXPECT_THROW((void)draft_of("virtual_prompt_style: p-tuning, pipeline_model_parallel_split_rank: "
                              "${divide_floor:1, 2}"),
               InputError);
}

TEST(YamlSettings, StopsAtSizesThatHaveNoKey) {
  for (const char* said : {"enable_hetero: true", "layerzero: true", "skip_train: true",
                           "optimizer_selection: fused_ema_adamw"}) {
    const Draft draft = megatron_draft(settings_of(kModel + said + "\n"), "dgx-h100");
    EXPECT_EQ(draft.stops.size(), 1U) << said;
  }
  const std::string wide = kModel + "swiglu: true\nmultiple_of: 50\nhidden_dim_multiplier: 1.3\n";
  EXPECT_NE(scenario_of(megatron_draft(settings_of(wide), "")).find("ffn_hidden_size: 250\n"),
            std::string::npos);
}

TEST(YamlSettings, TakesAnEmptyListAsNothing) {
  const Draft draft = megatron_draft(settings_of(kModel + "drop_layers: []\n"), "dgx-h100");
  EXPECT_TRUE(draft.stops.empty());
}

TEST(YamlSettings, ReadsBertByItsHead) {
  const std::string bert =
      scenario_of(megatron_draft(settings_of(kModel + "bert_binary_head: False\n"), ""));
  EXPECT_NE(bert.find("bidirectional_attention: true"), std::string::npos) << bert;
}

TEST(YamlSettings, ReadsPrimusSinksAndMamba) {
  const auto scenario = [](const std::string& more) {
    return scenario_of(megatron_draft(settings_of(kModel + more), ""));
  };
  const std::string sinks = scenario("use_sink_attention: true\nsink_sliding_window: 128\n");
  EXPECT_NE(sinks.find("attention_sinks: true"), std::string::npos) << sinks;
  EXPECT_NE(sinks.find("attention_window: 128"), std::string::npos) << sinks;
  EXPECT_NE(sinks.find("layer_pattern: \"WG\""), std::string::npos) << sinks;
  const std::string mamba = scenario("model_type: mamba\nis_hybrid_model: false\n");
  EXPECT_NE(mamba.find("layer_pattern: \"M\""), std::string::npos) << mamba;
  EXPECT_EQ(mamba.find("not understood"), std::string::npos) << mamba;
  const std::string off = scenario("use_sink_attention: false\nsink_sliding_window: 128\n");
  EXPECT_EQ(off.find("not understood"), std::string::npos) << off;
  EXPECT_NE(
      scenario("model_type: mamba\nis_hybrid_model: true\n").find("not understood: model_type"),
      std::string::npos);
}

TEST(YamlSettings, FindPrimusFilesByTheFramework) {
  const Given files{{"models/megatron_bridge/m.yaml", "num_layers: 3\n"},
                    {"m.yaml", "num_layers: 4\n"}};
  const auto layers = [&](const std::string& framework) {
    return value("modules:\n  post_trainer: {framework: " + framework + ", model: m.yaml}\n",
                 "num_layers", {}, files);
  };
  EXPECT_EQ(layers("megatron_bridge"), "3");
  EXPECT_EQ(layers("megatron"), "4");
  EXPECT_EQ(layers("another"), "4") << "beside the experiment";
}

// Primus' defaults say otherwise, and Megatron-LM overrules them.
TEST(YamlSettings, SumGradientsOfBf16WeightsInFp32) {
  const auto in_fp32 = [](const std::string& precision, const std::string& more) {
    const std::string text = scenario_of(
        megatron_draft(settings_of(kModel + "accumulate_allreduce_grads_in_fp32: false\n" +
                                   precision + ": true\n" + more),
                       ""));
    return text.find("accumulate_allreduce_grads_in_fp32: true") != std::string::npos;
  };
  EXPECT_TRUE(in_fp32("bf16", ""));
  EXPECT_FALSE(in_fp32("bf16", "grad_reduce_in_bf16: true\n"));
  EXPECT_FALSE(in_fp32("bf16", "use_precision_aware_optimizer: true\nmain_grads_dtype: bf16\n"));
  EXPECT_FALSE(in_fp32("fp16", ""));
}

}  // namespace
}  // namespace pipesim::yaml_settings_test
