// torchtitan's TOML job files as a scenario (config/job_config.py, and the older names of its
// train_configs). Its models are flavours by name, looked up in the catalogue.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <vector>

#include "models/layer_context.h"
#include "models/stage_ends.h"
#include "sim/core/letters.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/interop/torch/schedules.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

std::string lower(std::string text) {
  text = small_letters(std::move(text));
  std::ranges::replace(text, '_', '-');
  return text;
}

// Flavours whose names are not those of the catalogue.
struct Flavor {
  std::string_view name, flavor, model;
};
constexpr std::array kFlavors{
    Flavor{"llama4", "17bx16e", "llama4-scout"},
    Flavor{"llama4", "17bx128e", "llama4-maverick"},
    Flavor{"deepseek-v3", "16b", "deepseek-v2-lite"},
    Flavor{"deepseek-v3", "236b", "deepseek-v2"},
    Flavor{"deepseek-v3", "671b", "deepseek-v3"},
};

// "llama3" and "405B": llama3.1-405b.
std::string model_of(Settings& settings) {
  if (const auto given = catalogue_model(settings)) return given->name;
  const std::string name = lower(settings.text({"model.name"}).value_or(""));
  const std::string flavor = lower(settings.text({"model.flavor"}).value_or(""));
  std::string other;
  for (const Flavor& each : kFlavors) {
    if (each.name == name && each.flavor == flavor) other = each.model;
  }
  const std::array<std::string, 3> candidates{name + "-" + flavor, name + ".1-" + flavor, other};
  for (const std::string& candidate : candidates) {
    const auto& models = catalogue_models();
    if (std::ranges::find(models, candidate, &Transformer::name) != models.end()) return candidate;
  }
  return "";
}

struct Degrees {
  long tensor = 1, pipeline = 1, context = 1, expert = 1, data = 1;
  long replicas = 1;  // of the data ranks, groups that hold all parameters

  // fsdp_enabled of parallel_dims.py; without it parameters are replicated.
  [[nodiscard]] bool shards() const { return data / replicas > 1 || context > 1; }
};

Degrees degrees_of(Settings& settings, Draft& draft) {
  const auto degree = [&](const char* name, const char* older, const char* oldest) {
    return settings.number({name, older, oldest}, 1).value_or(1);
  };
  Degrees degrees;
  degrees.tensor = degree("parallelism.tensor_parallel_degree", "training.tensor_parallel_degree",
                          "training.tensor_parallel_size");
  degrees.pipeline =
      degree("parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree",
             "training.pipeline_parallel_degree");
  degrees.context =
      degree("parallelism.context_parallel_degree", "experimental.context_parallel_degree",
             "training.context_parallel_degree");
  degrees.expert = degree("parallelism.expert_parallel_degree", "expert_parallel_degree", "ep");
  const auto replicas = settings.number(
      {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"}, 1);
  const auto shards =
      settings.number({"parallelism.data_parallel_shard_degree",
                       "training.data_parallel_shard_degree", "training.data_parallel_degree"},
                      -1);
  const auto world = settings.number({"world_size"}, 1);
  degrees.replicas = replicas.value_or(1);
  const long of_model = degrees.tensor * degrees.pipeline * degrees.context;
  if (shards.value_or(-1) > 0) {
    degrees.data = *shards * degrees.replicas;
    if (world && *world != degrees.data * of_model) {
      draft.notes.push_back(fmt::format("{} GPUs, as the degrees say, not {} (world_size)",
                                        degrees.data * of_model, *world));
    }
  } else if (world && *world % (of_model * degrees.replicas) == 0) {
    degrees.data = *world / of_model;
  } else {
    degrees.data = degrees.replicas;
    draft.missing.push_back(fmt::format("the number of GPUs, a multiple of {}: world_size=N",
                                        of_model * degrees.replicas));
  }
  return degrees;
}

// Keys and values come all at once, or by an all-to-all a step to the next rank, which is a ring
// (torch/distributed/tensor/experimental/_attention.py).
void put_rotation(const Degrees& degrees, Settings& settings, Draft& draft) {
  const std::string method =
      settings.text({"parallelism.context_parallel_rotate_method"}).value_or("allgather");
  if (degrees.context == 1) return;
  if (method == "alltoall") {
    put(draft.parallel, "cp_comm_type", to_text(ContextExchange::kRing));
  } else if (method != "allgather") {
    not_understood(draft, "context_parallel_rotate_method",
                   fmt::format("context_parallel_rotate_method {}", method));
  }
}

void put_degrees(const Degrees& degrees, Settings& settings, Draft& draft) {
  Section& parallel = draft.parallel;
  put(parallel, "pipeline_model_parallel_size", degrees.pipeline);
  if (degrees.tensor > 1) put(parallel, "tensor_model_parallel_size", degrees.tensor);
  if (degrees.context > 1) put(parallel, "context_parallel_size", degrees.context);
  put_rotation(degrees, settings, draft);
  if (degrees.expert > 1) put(parallel, "expert_model_parallel_size", degrees.expert);
  // Before the setting was there, tensor ranks divided each expert as well.
  const auto of_expert = settings.number({"parallelism.expert_tensor_parallel_degree"}, 1);
  if (of_expert && degrees.expert > 1 && degrees.tensor > 1) {
    put(parallel, "expert_tensor_parallel_size", *of_expert);
  }
  if (degrees.data > 1) put(parallel, "data_parallel_size", degrees.data);
  const bool sequence = settings.flag({"parallelism.enable_sequence_parallel"}).value_or(true);
  if (degrees.tensor > 1 && sequence) put_flag(parallel, "sequence_parallel", true);
}

void put_stages(const Degrees& degrees, StagesOfRank of_rank, Settings& settings, Draft& draft) {
  const long first =
      settings.number({"parallelism.pipeline_parallel_first_stage_less_layers"}).value_or(1);
  const long last =
      settings.number({"parallelism.pipeline_parallel_last_stage_less_layers"}).value_or(1);
  const auto each = settings.number({"parallelism.pipeline_parallel_layers_per_stage"}, 1);
  const auto& models = catalogue_models();
  const auto model = std::ranges::find(models, draft.model_name, &Transformer::name);
  if (model == models.end()) return;
  long stages = degrees.pipeline * (of_rank == StagesOfRank::kOne ? 1 : 2);
  if (each) {
    const long asked = (model->num_layers + first + last + *each - 1) / *each;
    if (asked % degrees.pipeline != 0 || (of_rank != StagesOfRank::kAny && asked != stages)) {
      draft.missing.push_back(fmt::format(
          "pipeline_parallel_layers_per_stage {} makes {} stages, which {} ranks do not run in "
          "this order",
          *each, asked, degrees.pipeline));
      return;
    }
    stages = asked;
  }
  const std::vector<int> split = layers_less_ends(model->num_layers, static_cast<int>(stages),
                                                  static_cast<int>(first), static_cast<int>(last));
  if (std::ranges::min(split) < 0) {
    draft.missing.push_back(fmt::format(
        "fewer stages than {}: the first or the last has too few layers to be less", stages));
    return;
  }
  if (of_rank == StagesOfRank::kAny) {
    put(draft.parallel, "virtual_pipeline_model_parallel_size", stages / degrees.pipeline);
  }
  put(draft.parallel, "num_layers_per_stage", fmt::format("[{}]", fmt::join(split, ", ")));
}

void put_order(const Degrees& degrees, Settings& settings, Draft& draft) {
  const auto csv = settings.text({"parallelism.pipeline_parallel_schedule_csv",
                                  "experimental.pipeline_parallel_schedule_csv"});
  const std::string name = settings
                               .text({"parallelism.pipeline_parallel_schedule",
                                      "experimental.pipeline_parallel_schedule"})
                               .value_or("1F1B");
  if (degrees.pipeline == 1) return;
  if (csv) {
    draft.schedule = fmt::format("{{csv: '{}'}}", *csv);
    return;
  }
  const auto* const known = std::ranges::find_if(kTorchSchedules, [&](const TorchSchedule& each) {
    return lower(std::string(each.theirs)) == lower(name);
  });
  if (known == kTorchSchedules.end()) {
    draft.missing.push_back(fmt::format("a schedule for pipeline_parallel_schedule {}", name));
    return;
  }
  draft.schedule = std::string(known->ours);
  put_stages(degrees, known->stages, settings, draft);
  if (known->waits) put(draft.framework, "transfers", "blocking");
}

// Its first pipelines, which `experimental` was for, divided a batch into as many microbatches as
// there are ranks in a pipeline; those of `parallelism` say how large one is.
long micro_batch_of(const Degrees& degrees, long local, Settings& settings, Draft& draft) {
  const auto number = settings.number({"experimental.pipeline_parallel_microbatches"}, 1);
  const bool older = settings.find({"experimental.pipeline_parallel_degree",
                                    "training.pipeline_parallel_degree"}) != nullptr;
  if (!number && !older) {
    return settings.number({"parallelism.pipeline_parallel_microbatch_size"}, 1).value_or(1);
  }
  if (!number) {
    draft.notes.push_back(fmt::format(
        "{} microbatches, one for every rank of a pipeline, as its first pipelines had it",
        degrees.pipeline));
  }
  return std::max(1L, local / number.value_or(degrees.pipeline));
}

void put_samples(const Degrees& degrees, Settings& settings, Draft& draft) {
  const long local =
      settings.number({"training.local_batch_size", "training.batch_size"}, 1).value_or(8);
  const auto global = settings.number({"training.global_batch_size"}, -1);
  const long micro = degrees.pipeline > 1 ? micro_batch_of(degrees, local, settings, draft) : local;
  put(draft.batch, "micro_batch_size", micro);
  put(draft.batch, "global_batch_size", global.value_or(-1) > 0 ? *global : local * degrees.data);
  put(draft.batch, "seq_length",
      settings.number({"training.seq_len", "training.max_context_length"}, 1).value_or(2048));
}

// FSDP2 frees and gathers by fsdp_reshard_after_forward, in a pipeline by default never. There
// torch.distributed.pipelining has it gather and reduce once (backward_maybe_with_nosync).
void put_sharded(const Degrees& degrees, Settings& settings, Draft& draft) {
  const std::string reshard =
      settings.text({"parallelism.fsdp_reshard_after_forward"}).value_or("default");
  if (!degrees.shards()) return;
  const bool pipeline = degrees.pipeline > 1;
  ParameterState state{.data = static_cast<int>(degrees.data)};
  set_sharding(ShardingStrategy::kOptimGradsParams, state);
  state.reshard_after_forward = reshard == "default" ? !pipeline : reshard != "never";
  state.reduce_every_microbatch = !pipeline;
  if (degrees.replicas > 1) state.shard_degree = state.data / static_cast<int>(degrees.replicas);
  put_sharding(draft.memory, state);
  if (pipeline) {
    draft.notes.emplace_back(
        "in a pipeline FSDP sums gradients whole and reduces them after the last backward, as "
        "torch.distributed.pipelining has it");
  }
}

// True where these stay in 16 bits here as well: the output and the router.
bool leaves_ends(const std::string& modules) {
  std::istringstream words(modules);
  for (std::string word; words >> word;) {
    if (word != "output" && word != "router.gate" && word != "auto_filter_small_kn") return false;
  }
  return true;
}

// Converters of linear layers, and of experts, which have one of their own. Their sections say
// nothing where no converter is named.
std::string precision_of(Settings& settings, Draft& draft) {
  settings.move_section("quantize.grouped_mm.float8.", "float8.moe_");
  settings.move_section("quantize.grouped_mm.mx.", "mx.moe_");
  settings.move_section("quantize.linear.", "");
  settings.move_section("quantize.dense.", "");
  const auto converters = settings.text({"model.converters"}).value_or("");
  const auto names = [&converters](const char* word) {
    return converters.find(word) != std::string::npos;
  };
  const bool float8 = names("float8") || settings.is_set({"training.enable_float8_linear",
                                                          "float8.enable_float8_linear"});
  const bool mx = names("mx");
  if (!float8) settings.leave_out("float8.");
  if (!mx) settings.leave_out("mx.");
  const auto parameters = settings.text({"training.mixed_precision_param"}).value_or("bfloat16");
  if (!float8 && !mx) return parameters == "float32" ? "fp32" : "bf16";
  const auto experts =
      settings.text({"float8.moe_fqns_prototype", "float8.moe_fqns", "mx.moe_fqns"}).value_or("");
  const bool all = names("grouped") || experts.find("experts") != std::string::npos;
  const auto& models = catalogue_models();
  const auto model = std::ranges::find(models, draft.model_name, &Transformer::name);
  if (model != models.end() && model->experts && !all) {
    not_understood(draft, "model.converters",
                   fmt::format("model.converters {}: experts compute in 16 bits", converters));
  }
  const auto apart = settings.text({"float8.filter_fqns", "mx.filter_fqns"}).value_or("");
  if (!leaves_ends(apart)) {
    draft.not_modelled.push_back(fmt::format("filter_fqns {}: in fewer bits here too", apart));
  }
  return mx ? "mxfp8" : "fp8";
}

void put_kept(const Degrees& degrees, Settings& settings, Draft& draft) {
  put(draft.memory, "kind", "model");
  put(draft.memory, "precision", precision_of(settings, draft));
  put_sharded(degrees, settings, draft);
  const std::string mode = settings.text({"activation_checkpoint.mode"}).value_or("selective");
  const auto option = settings.text({"activation_checkpoint.selective_ac_option"}).value_or("2");
  if (mode == "full") draft.recompute = "full";
  if (mode != "full" && mode != "selective" && mode != "none") {
    not_understood(draft, "activation_checkpoint.mode",
                   fmt::format("activation_checkpoint.mode {}", mode));
  }
  if (mode != "selective") return;
  const bool every = !option.empty() && option.find_first_not_of("0123456789") == std::string::npos;
  if (every) {
    const bool all = option == "0" || option == "1";
    draft.recompute = all ? "full" : fmt::format("{{granularity: full, every: {}}}", option);
    return;
  }
  draft.recompute = "pointwise";
  draft.notes.push_back(fmt::format(
      "selective activation checkpointing ({}) as recomputation of what costs no matmul", option));
}

}  // namespace

Draft torchtitan_draft(Settings settings, const std::string& cluster) {
  Draft draft;
  draft.origin = fmt::format("{}, torchtitan's settings", settings.file());
  draft.cluster = cluster;
  settings.refuse_other_models();
  draft.model_name = model_of(settings);
  if (draft.model_name.empty()) {
    draft.missing.emplace_back("the model, by a name of `pipesim list models`: model=NAME");
  }
  const Degrees degrees = degrees_of(settings, draft);
  put_degrees(degrees, settings, draft);
  put_order(degrees, settings, draft);
  put_samples(degrees, settings, draft);
  put_kept(degrees, settings, draft);
  if (cluster.empty()) draft.missing.emplace_back("the cluster: --cluster NAME");
  take_rest(settings, draft);
  return draft;
}

}  // namespace pipesim
