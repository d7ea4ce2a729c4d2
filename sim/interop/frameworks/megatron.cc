// Megatron-LM's arguments as a scenario: sizes, batch, memory, recomputation. Their meanings and
// defaults are in megatron/training/arguments.py and the configurations it is made from
// (models/catalog/frameworks.yaml has the commit). NeMo's and Bridge's names come after each.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "models/layer_context.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/interop/frameworks/encoder_decoder.h"
#include "sim/interop/frameworks/megatron_layers.h"
#include "sim/interop/frameworks/megatron_memory.h"
#include "sim/interop/frameworks/megatron_model.h"
#include "sim/interop/frameworks/megatron_recompute.h"
#include "sim/interop/frameworks/megatron_schedule.h"
#include "sim/interop/frameworks/number_list.h"
#include "sim/interop/frameworks/vision.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

// MindSpeed's names of exchanges, as Megatron-LM's.
std::string exchange_of(const std::string& algorithm) {
  if (algorithm == "megatron_cp_algo") return "p2p";
  if (algorithm == "ulysses_cp_algo" || algorithm == "mamba_cp_algo") return "a2a";
  if (algorithm == "hybrid_cp_algo") return "a2a+p2p";
  return algorithm == "kvallgather_cp_algo" ? "all_gather" : algorithm;
}

// MindSpeed repeats keys and values of grouped heads before ranks divide heads, unless told not to.
void put_repeated_keys(Settings& settings, const std::string& exchange, Draft& draft) {
  const bool named = settings.has("context_parallel_algo");
  const bool repeats = settings.flag({"kv_head_repeat_before_uly_alltoall"}).value_or(named);
  const bool grouped = !draft.model_name.empty() || has_key(draft.model, "num_query_groups");
  if (repeats && grouped && exchange.starts_with("a2a")) {
    put_flag(draft.parallel, "kv_head_repeat", true);
  }
}

// p2p unless it says otherwise, one kind for all layers or one for each; of sizes two.
void put_context_exchange(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const bool ulysses = settings.has("ds_sequence_parallel_size");  // Megatron-DeepSpeed's
  const std::string said = exchange_of(
      settings.text({"cp_comm_type", "context_parallel_algo"}).value_or(ulysses ? "a2a" : "p2p"));
  auto hierarchy = settings.text({"hierarchical_context_parallel_sizes"});
  if (const auto heads = settings.number({"ulysses_degree_in_cp"}, 1)) {
    hierarchy = fmt::format("{},{}", *heads, sizes.context / *heads);
  }
  if (sizes.context == 1) return;
  std::vector<std::string> kinds;
  std::istringstream words(said);
  for (std::string kind; words >> kind;) {
    if (kind == "allgather") kind = "all_gather";
    if (std::ranges::find(kContextExchanges, kind) == kContextExchanges.end()) {
      not_understood(draft, "cp_comm_type", fmt::format("cp_comm_type {}", kind));
      return;
    }
    kinds.push_back(kind);
  }
  put_repeated_keys(settings, said, draft);
  put(draft.parallel, "cp_comm_type",
      kinds.size() == 1 ? kinds.front() : fmt::format("[{}]", fmt::join(kinds, ", ")));
  if (std::ranges::find(kinds, "a2a+p2p") == kinds.end()) return;
  std::string list = hierarchy.value_or("");
  std::ranges::replace(list, ' ', ',');
  if (!list.empty()) put(draft.parallel, "hierarchical_context_parallel_sizes", "[" + list + "]");
}

void put_expert_ranks(Settings& settings, const MegatronSizes& sizes, Section& parallel) {
  if (const auto expert =
          settings.number({"expert_model_parallel_size", "moe_expert_parallel_size"}, 1);
      expert > 1) {
    put(parallel, "expert_model_parallel_size", *expert);
  }
  if (const auto expert = settings.number({"expert_tensor_parallel_size"}, 1)) {
    if (sizes.experts) put(parallel, "expert_tensor_parallel_size", *expert);
  }
  const bool spread = settings.is_set({"moe_tp_extend_ep"});
  if (spread && sizes.experts) put(parallel, "expert_tensor_parallel_size", 1);
}

// Data ranks by --data-parallel-size, or by all GPUs; nothing where neither is known.
std::optional<long> put_parallel(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  Section& parallel = draft.parallel;
  put(parallel, "pipeline_model_parallel_size", sizes.pipeline);
  if (sizes.tensor > 1) put(parallel, "tensor_model_parallel_size", sizes.tensor);
  if (sizes.context > 1) put(parallel, "context_parallel_size", sizes.context);
  put_context_exchange(settings, sizes, draft);
  put_expert_ranks(settings, sizes, parallel);
  if (settings.is_set({"sequence_parallel"}) && sizes.tensor > 1) {
    put_flag(parallel, "sequence_parallel", true);
  }
  std::optional<long> world = settings.number({"world_size", "worker_num"}, 1);  // and msrun's
  const auto nodes = settings.number({"nnodes", "num_nodes", "nodes"}, 1);
  const auto each = settings.number(
      {"nproc_per_node", "devices", "gpus_per_node", "num_gpus", "ntasks_per_node"}, 1);
  const auto tasks = settings.number({"ntasks"}, 1);
  const long of_model = sizes.tensor * sizes.pipeline * sizes.context;
  if (const auto data = settings.number({"data_parallel_size"}, 1)) {
    put(parallel, "data_parallel_size", *data);
    return data;
  }
  if (!world && !each) world = tasks;
  if (!world && !each) {
    draft.missing.emplace_back("the number of GPUs: world_size=N");
    return std::nullopt;
  }
  const long gpus = world.value_or(each.value_or(1) * nodes.value_or(1));
  if (gpus % of_model != 0) {
    draft.missing.push_back(fmt::format(
        "a number of GPUs that divides by {}, tensor x pipeline x context; here are {}: "
        "world_size=N",
        of_model, gpus));
    return std::nullopt;
  }
  put(parallel, "data_parallel_size", gpus / of_model);
  return gpus / of_model;
}

// Layers of every stage in forward order, where the settings list them; of a model whose idle
// layers stand in even stages those that work.
std::vector<long> listed_layers(Settings& settings, const MegatronSizes& sizes) {
  if (const auto list = settings.text({"num_layer_list"})) return numbers_of(*list);
  const long stages = sizes.pipeline * sizes.chunks;
  if (sizes.idle_layers.empty() || sizes.layers % stages != 0) return sizes.layers_of_stage;
  std::vector<long> layers(stages, sizes.layers / stages);
  for (const long idle : sizes.idle_layers) {
    if (idle >= 0 && idle < sizes.layers) --layers[idle / (sizes.layers / stages)];
  }
  return layers;
}

void put_layers(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  Section& parallel = draft.parallel;
  if (const auto layers = listed_layers(settings, sizes); !layers.empty()) {
    put(parallel, "num_layers_per_stage", fmt::format("[{}]", fmt::join(layers, ", ")));
    return;
  }
  if (!sizes.layout.empty()) {
    put(parallel, "pipeline_model_parallel_layout", "'" + sizes.layout + "'");
    return;
  }
  for (const char* key :
       {"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"}) {
    if (const auto layers = settings.number({key})) put(parallel, key, *layers);
  }
  // DeepSpeed's pipeline module: even numbers of what its pattern names.
  const std::string method = settings.text({"pp_partition_method"}).value_or("type:transformer");
  const bool both = method.find("embedding") != std::string::npos;
  if (!method.starts_with("type:transformer")) {
    not_understood(draft, "pp_partition_method", fmt::format("pp_partition_method {}", method));
  }
  for (const char* key :
       {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
    if (settings.is_set({key}) || both) put_flag(parallel, key, true);
  }
}

// Attention that stays within documents, of one length (MindSpeed's fix_sub_seq_length) or of any.
void put_documents(Settings& settings, long sequence, Draft& draft) {
  const bool packed = settings.seen("packing") == "true" && settings.is_set({"packing"});
  const bool apart = settings.is_set({"reset_attention_mask"});
  const long length = settings.number({"fix_sub_seq_length"}, -1).value_or(-1);
  if (packed) draft.not_modelled.emplace_back("packing: a document fills its sequence here");
  if (!apart || length >= sequence) return;
  if (length <= 0) {
    draft.not_modelled.emplace_back("reset_attention_mask: a document fills its sequence here");
  } else if (sequence % length != 0) {
    not_understood(draft, "fix_sub_seq_length",
                   fmt::format("fix_sub_seq_length {}, no part of {}", length, sequence));
  } else {
    put(draft.batch, "lengths",
        fmt::format("{{distribution: uniform, min: {}, max: {}}}", length, length));
    put(draft.batch, "packing", "greedy");
  }
}

void put_batch(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  if (const auto micro = settings.number({"micro_batch_size"}, 1)) {
    put(draft.batch, "micro_batch_size", *micro);
  } else {
    draft.missing.emplace_back("micro_batch_size=N");
  }
  const auto steps = settings.number({"gradient_accumulation_steps"}, 1);
  if (const auto global = settings.number({"global_batch_size"}, 1)) {
    put(draft.batch, "global_batch_size", *global);
  } else if (steps) {
    put(draft.batch, "num_microbatches", *steps);
  } else {
    draft.missing.emplace_back("global_batch_size=N");
  }
  // Beside an encoder of images seq_length counts an image's tokens.
  const bool sees = settings.has("language_model_type");
  const auto whole = sees ? settings.number({"decoder_seq_length"}, 1) : std::nullopt;
  const auto own = settings.number(
      {"seq_length", "encoder_seq_length", "sequence_length", "data.train_ds.max_seq_length"}, 1);
  if (const auto length = whole ? whole : own) {
    put(draft.batch, "seq_length", *length);
    put_documents(settings, *length, draft);
  } else if (!sizes.learned_positions) {
    draft.missing.emplace_back("seq_length=N");
  }
}

std::string precision_of(Settings& settings, Draft& draft) {
  auto named = settings.text({"mixed_precision", "precision_config", "precision"}).value_or("");
  const auto weights = settings.text({"params_dtype"}).value_or("");  // Bridge's
  if (named.empty() && weights.ends_with("bfloat16")) named = "bf16";
  const auto fp8 = settings.text({"fp8_format", "fp8"});
  const auto recipe = settings.text({"fp8_recipe"}).value_or("delayed");
  const auto fp4 = settings.text({"fp4_format", "fp4"});
  const bool bf16 = settings.is_set({"bf16"});
  const bool fp16 = settings.is_set({"fp16"});
  const auto on = [](const std::optional<std::string>& format) {
    return format && *format != "false" && *format != "False";
  };
  if (on(fp4)) return "nvfp4";
  if (on(fp8) || named.find("fp8") != std::string::npos) {
    if (recipe == "mxfp8") return "mxfp8";
    if (recipe != "delayed") {
      draft.not_modelled.push_back(
          fmt::format("fp8_recipe {}: as with one scale a tensor", recipe));
    }
    return "fp8";
  }
  if (fp16 || named.starts_with("fp16") || named.starts_with("16")) return "fp16";
  if (bf16 || named.starts_with("bf16")) return "bf16";
  if (settings.has("train_type") || settings.has("tuner_type")) {
    draft.notes.emplace_back("bf16: ms-swift takes the precision of the checkpoint");
    return "bf16";
  }
  draft.notes.emplace_back("fp32, which it is where the settings name neither bf16 nor fp16");
  return "fp32";
}

// ZeRO's stage, of Megatron-DeepSpeed, or NeMo's FSDP.
std::optional<ShardingStrategy> named_sharding(Settings& settings, Draft& draft) {
  const auto stage = settings.number({"zero_stage"});
  const bool fsdp = settings.is_set({"fsdp"});
  const std::string strategy = settings.text({"fsdp_sharding_strategy"}).value_or("full");
  const bool deepspeed = settings.has("deepspeed") || settings.has("deepspeed_config");
  if (deepspeed && stage.value_or(0) == 0 && settings.is_set({"bf16"})) {
    draft.notes.emplace_back("DeepSpeed's bf16 optimizer divides its states over the data ranks");
    return ShardingStrategy::kOptim;
  }
  if (stage && *stage <= 3) return static_cast<ShardingStrategy>(*stage);
  if (!fsdp) return std::nullopt;
  if (strategy == "full") return ShardingStrategy::kOptimGradsParams;
  if (strategy == "grad") return ShardingStrategy::kOptimGrads;
  not_understood(draft, "fsdp_sharding_strategy",
                 fmt::format("fsdp_sharding_strategy {}", strategy));
  return std::nullopt;
}

// Megatron-FSDP, or torch's, else the distributed optimizer.
void put_sharded(Settings& settings, std::optional<long> data, Draft& draft) {
  static const std::vector<std::string> kStrategies(kShardingStrategies.begin(),
                                                    kShardingStrategies.end());
  const auto named = settings.text({"data_parallel_sharding_strategy"});
  const bool kept = settings.is_set({"torch_fsdp2_no_reshard_after_forward"});
  const auto reshard = settings.flag({"torch_fsdp2_reshard_after_forward"});
  const long instances = settings.number({"num_distributed_optimizer_instances"}, 1).value_or(1);
  ParameterState state;
  state.distributed_optimizer = settings.is_set({"use_distributed_optimizer"});
  if (settings.is_set({"use_megatron_fsdp", "use_custom_fsdp"})) {
    const auto known = std::ranges::find(kStrategies, named.value_or("optim_grads_params"));
    if (known == kStrategies.end()) {
      not_understood(draft, "data_parallel_sharding_strategy",
                     fmt::format("data_parallel_sharding_strategy {}", *named));
    } else {
      set_sharding(static_cast<ShardingStrategy>(known - kStrategies.begin()), state);
    }
  }
  if (settings.is_set({"use_torch_fsdp2"})) {
    set_sharding(ShardingStrategy::kOptimGradsParams, state);
    state.reshard_after_forward = reshard.value_or(!kept);
  }
  if (const auto named = named_sharding(settings, draft)) set_sharding(*named, state);
  // A gradient that every microbatch scatters is written, not added to.
  if (state.sharded_gradients) {
    (void)settings.find({"no_gradient_accumulation_fusion", "gradient_accumulation_fusion"});
  }
  if (instances > 1 && state.distributed_optimizer && data) {
    state.shard_degree = static_cast<int>(*data / instances);
  }
  put_sharding(draft.memory, state);
}

// Megatron-LM sums gradients of bf16 weights in fp32, whatever accumulate_allreduce_grads_in_fp32
// says, unless grad_reduce_in_bf16 or a main_grads_dtype of fewer bits is set.
void put_gradients(Settings& settings, bool bf16_weights, bool autocast, Draft& draft) {
  const bool in_bf16 = settings.is_set({"grad_reduce_in_bf16", "o2_gradient"});
  const auto summed = settings.flag({"accumulate_allreduce_grads_in_fp32"});
  auto in_fp32 = settings.flag({"grad_reduce_in_fp32"});  // Bridge's
  const bool main_in_fp32 =
      settings.text({"main_grads_dtype"}).value_or("fp32").find("32") != std::string::npos;
  if (!in_fp32 && summed) in_fp32 = *summed || (bf16_weights && main_in_fp32);
  const auto synced = settings.text({"grad_sync_dtype"});  // NeMo's
  if (in_bf16 || in_fp32 || synced) {
    const bool less = in_bf16 || (synced && *synced != "fp32" && *synced != "32");
    const bool whole = autocast || (!less && in_fp32.value_or(true));
    put_flag(draft.memory, "accumulate_allreduce_grads_in_fp32", whole);
    if (autocast && less) {
      draft.not_modelled.emplace_back(
          "gradients of fewer bits than their weights: in fp32 here, as the weights");
    }
  }
}

// BERT's vocabulary is of models with an encoder: BERT and T5, which other settings name.
void stop_at_tokenizer(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const bool bert = has_key(draft.model, "bidirectional_attention") || sizes.encoder_layers > 0;
  const auto tokenizer = settings.text({"tokenizer_type"}).value_or("");
  if (bert || !tokenizer.starts_with("Bert")) return;
  not_understood(draft, "tokenizer_type",
                 fmt::format("tokenizer_type {}, of models with an encoder", tokenizer));
}

// A script with an argument that Megatron-LM had before Transformer Engine's layers were its usual
// ones.
bool has_older_arguments(const Settings& settings) {
  const bool older = settings.has("data_impl") || settings.has("DDP_impl") ||
                     settings.has("checkpoint_activations") ||
                     settings.has("attention_head_type") || is_of_megatron_llm(settings);
  return older && !settings.command().empty() && !settings.has("transformer_impl");
}

// Transformer Engine picks fused attention by itself. Megatron-LM's own layers, of which
// Megatron-DeepSpeed knows no others, have it where they are told.
bool attends_by_flash(Settings& settings, const MegatronSizes& sizes) {
  const auto backend = settings.text({"attention_backend"}).value_or("auto");
  const bool local =
      settings.text({"transformer_impl"}).value_or("") == "local" || has_older_arguments(settings);
  const bool deepspeed = settings.has("deepspeed") || settings.has("deepspeed_config");
  const bool own = local || deepspeed || has_layers_of_its_own(settings, sizes);
  if (own && !settings.is_set({"use_flash_attn", "use_flash_attn_v1", "use_flash_attn_v2",
                               "use_flash_attn_triton"})) {
    return false;
  }
  return !settings.is_set({"export_force_local_attention"}) &&
         backend.find("unfused") == std::string::npos && backend.find("local") == std::string::npos;
}

void put_memory(Settings& settings, const MegatronSizes& sizes, std::optional<long> data,
                Draft& draft) {
  Section& memory = draft.memory;
  put(memory, "kind", "model");
  const std::string precision = precision_of(settings, draft);
  put(memory, "precision", precision);
  put_sharded(settings, data, draft);
  const bool autocast = put_autocast(settings, precision, draft);
  const bool bf16_weights = !autocast && precision != "fp16" && precision != "fp32";
  put_optimizer_state(settings, bf16_weights, draft);
  put_gradients(settings, bf16_weights, autocast, draft);
  if (!attends_by_flash(settings, sizes)) put_flag(memory, "flash_attention", false);
  constexpr double kUsual = 0.1;
  const double hidden = settings.real({"hidden_dropout"}).value_or(kUsual);
  const double attention = settings.real({"attention_dropout"}).value_or(kUsual);
  if (hidden > 0 || attention > 0) put_flag(memory, "dropout", true);
  const bool alone = settings.is_set({"fp8_param_gather"});
  if (alone && precision.find("fp8") != std::string::npos) {
    put_flag(memory, "fp8_param_gather", true);
  }
  if (settings.is_set({"cross_entropy_loss_fusion"})) {
    put_flag(memory, "cross_entropy_loss_fusion", true);
  }
  const bool apart = settings.is_set({"no_bias_swiglu_fusion"});
  if (!settings.flag({"bias_swiglu_fusion", "bias_activation_fusion"}).value_or(!apart)) {
    put_flag(memory, "bias_swiglu_fusion", false);
  }
  put_adapters(settings, draft);
  put_vision(settings, sizes.tensor, draft);
  if (settings.seen("optimizer_selection") == "fused_torch_adamw") {
    (void)settings.find({"optimizer_selection"});
  }
  stop_at_optimizer("optimizer", settings.text({"optimizer"}).value_or("adam"), draft);
  stop_at_tokenizer(settings, sizes, draft);
  put_kept_activations(settings, draft);
}

// Seconds are those of experts computed together, sorted and scaled by fused kernels.
void take_fused_experts(Settings& settings, Draft& draft) {
  for (const char* fused :
       {"moe_grouped_gemm", "moe_permute_fusion", "use_transformer_engine_op_fuser"}) {
    if (!settings.flag({fused}).value_or(true)) {
      draft.not_modelled.push_back(fmt::format("{} false", fused));
    }
  }
}

// Experts padded to a capacity all compute as many tokens, so that true is returned. Experts that
// are only cut to it stop the import.
bool is_balanced(Settings& settings, Draft& draft) {
  const bool forced = settings.is_set({"moe_router_force_load_balancing"});
  // Megatron-DeepSpeed's experts are always padded.
  const auto filled = settings.real({"moe_train_capacity_factor"});
  const double factor =
      filled ? *filled : settings.real({"moe_expert_capacity_factor"}).value_or(-1);
  const bool padded = settings.is_set({"moe_pad_expert_input_to_capacity"}) || filled;
  if (factor < 0) return forced;
  if (padded && factor > 0 && (factor == 1 || !draft.model.empty())) {
    if (factor != 1) put(draft.model, "moe.capacity_factor", fmt::format("{:g}", factor));
    return true;
  }
  not_understood(
      draft, "moe_expert_capacity_factor",
      fmt::format("moe_expert_capacity_factor {:g}{}", factor, padded ? ", padded" : ""));
  return forced;
}

// How experts exchange their tokens.
void put_exchange(Settings& settings, Draft& draft) {
  Section& cost = draft.cost;
  const auto dispatcher = settings.text({"moe_token_dispatcher_type"}).value_or("");
  const auto backend = settings.text({"moe_flex_dispatcher_backend"});
  const bool deepep = settings.is_set({"moe_enable_deepep"});
  if (dispatcher == "flex" || deepep) {
    put(cost, "moe_token_dispatcher_type", "flex");
    // NCCL's leaves on the GPU what goes where, as HybridEP does.
    const bool known = backend == "deepep" || backend == "hybridep" || backend == "ncclep";
    if (known) {
      put(cost, "moe_flex_dispatcher_backend", backend == "deepep" ? "deepep" : "hybridep");
    }
  }
  for (const char* key : {"moe_dispatch_fwd_dtype", "moe_combine_bwd_dtype"}) {
    const std::string dtype = settings.text({key}).value_or("bf16");
    if (dtype == "fp8" || dtype == "mxfp8") {
      put(cost, key, dtype);
    } else if (dtype != "bf16") {
      not_understood(draft, key, fmt::format("{} {}", key, dtype));
    }
  }
  if (dispatcher == "allgather") {
    draft.not_modelled.emplace_back("moe_token_dispatcher_type allgather: tokens go all to all");
  }
  if (is_balanced(settings, draft)) put_flag(cost, "moe_router_force_load_balancing", true);
}

void put_cost(Settings& settings, const MegatronSizes& sizes, const std::string& cluster,
              Draft& draft) {
  // NeMo's name, and MindSpeed's two.
  const bool buffers = settings.is_set({"ub_tp_comm_overlap", "use_ascend_mc2", "use_ascend_coc"});
  for (const std::string_view key :
       {"tp_comm_overlap", "overlap_grad_reduce", "overlap_param_gather"}) {
    const bool on = settings.is_set({key.data()}) || (buffers && key == "tp_comm_overlap");
    if (on && !cluster.empty()) put_flag(draft.cost, key, true);
  }
  if (sizes.experts && !cluster.empty()) put_exchange(settings, draft);
  if (!sizes.experts) {
    (void)settings.find({"moe_train_capacity_factor", "moe_expert_capacity_factor",
                         "moe_pad_expert_input_to_capacity"});
  }
  if (!draft.cost.empty()) draft.cost.insert(draft.cost.begin(), {"kind", "roofline"});
  // Megatron-LM's schedule of one chunk waits for its messages; with several they overlap unless
  // that is switched off.
  const bool off = settings.is_set({"no_overlap_p2p_communication"}) ||
                   !settings.flag({"overlap_p2p_comm", "overlap_p2p_communication"}).value_or(true);
  if (sizes.pipeline > 1 && !sizes.zero_bubble && (sizes.chunks == 1 || off)) {
    put(draft.framework, "transfers", "blocking");
  }
}

// The model of a checkpoint that a recipe starts from, where the catalogue has its id.
std::optional<Transformer> model_of_checkpoint(Settings& settings) {
  const auto id = settings.text({"hf_path"});
  if (!id || id->find('/') == std::string::npos) return std::nullopt;
  const auto& models = catalogue_models();
  const auto found = std::ranges::find_if(models, [&id](const Transformer& model) {
    return (model.source + " ").find(" " + *id + " ") != std::string::npos;
  });
  return found == models.end() ? std::nullopt : std::optional(*found);
}

// model=NAME beside the file; false without. A key `model` of the file may be another thing.
bool take_catalogue_model(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  const auto& models = catalogue_models();
  const auto named = settings.text({"model"}).value_or("");
  const bool known = std::ranges::count(models, named, &Transformer::name) > 0;
  std::optional<Transformer> found;
  if (known || settings.is_given("model")) {
    found = catalogue_model(settings);
  } else if (!settings.has("num_layers")) {
    found = model_of_checkpoint(settings);
  }
  if (!found) return false;
  if (encodes_and_decodes(settings) && !found->cross) {
    throw InputError(settings.place("model"),
                     fmt::format("the settings are of a model that encodes and decodes (T5), which "
                                 "{} does not",
                                 found->name));
  }
  draft.model_name = found->name;
  sizes.layers = found->num_layers;
  sizes.encoder_layers = found->cross ? found->cross->encoder_layers : 0;
  if (found->cross) put_decoded_tokens(settings, *found, draft);
  sizes.learned_positions = found->positions == Positions::kLearned;
  sizes.experts = found->experts.has_value();
  return true;
}

}  // namespace

Draft megatron_draft(Settings settings, const std::string& cluster) {
  rename_primus_settings(settings);  // as they are given beside the file
  Draft draft;
  draft.origin = fmt::format("{}, Megatron-LM's settings", settings.file());
  draft.cluster = cluster;
  MegatronSizes sizes;
  sizes.pipeline =
      settings.number({"pipeline_model_parallel_size", "pipe_parallel_size"}, 1).value_or(1);
  sizes.tensor =
      settings.number({"tensor_model_parallel_size", "model_parallel_size"}, 1).value_or(1);
  sizes.context =
      settings.number({"context_parallel_size", "ds_sequence_parallel_size"}, 1).value_or(1);
  if (settings.is_set({"no_pipeline_parallel"}) && sizes.pipeline > 1) {
    not_understood(draft, "no_pipeline_parallel",
                   fmt::format("no_pipeline_parallel beside {} stages", sizes.pipeline));
  }
  settings.refuse_other_models();
  if (!take_catalogue_model(settings, sizes, draft)) put_model(settings, sizes, draft);
  divide_stages(settings, sizes, draft);
  put_schedule(settings, sizes, draft);
  const std::optional<long> data = put_parallel(settings, sizes, draft);
  put_layers(settings, sizes, draft);
  put_batch(settings, sizes, draft);
  if (draft.model.empty() && draft.model_name.empty()) {
    draft.missing.emplace_back(
        "a model, by a name of `pipesim list models`: model=NAME, or num_layers=N, hidden_size=N, "
        "num_attention_heads=N");
  } else if (cluster.empty()) {
    draft.missing.emplace_back("the cluster: --cluster NAME");
  }
  put_memory(settings, sizes, data, draft);
  put_recompute(settings, sizes, draft);
  put_encoder_recompute(settings, draft);
  if (draft.model.empty() && draft.model_name.empty()) draft.memory.clear();
  put_cost(settings, sizes, cluster, draft);
  take_fused_experts(settings, draft);
  take_rest(settings, draft);
  return draft;
}

}  // namespace pipesim
