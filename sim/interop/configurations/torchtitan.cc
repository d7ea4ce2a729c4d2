#include "sim/interop/configurations/torchtitan.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "models/stage_ends.h"
#include "sim/interop/torch/schedules.h"
#include "sim/scenario/modelled.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

// Shapes of its llama3 (torchtitan/models/llama3), by their flavour.
struct Flavor {
  const char* name;
  int layers, hidden, heads, groups, ffn;
};
constexpr std::array kFlavors{Flavor{"8B", 32, 4096, 32, 8, 14336},
                              Flavor{"70B", 80, 8192, 64, 8, 28672},
                              Flavor{"405B", 126, 16384, 128, 8, 53248}};
constexpr int kVocabulary = 128256;  // of Llama 3's tokenizer

const Flavor* flavor_of(const Transformer& model) {
  Transformer plain;
  plain.name = model.name;
  plain.source = model.source;
  plain.kv_channels = 128;
  plain.vocab_size = kVocabulary;
  plain.max_position_embeddings = model.max_position_embeddings;
  plain.gated_mlp = true;
  for (const Flavor& each : kFlavors) {
    plain.num_layers = each.layers;
    plain.hidden_size = each.hidden;
    plain.num_attention_heads = each.heads;
    plain.num_query_groups = each.groups;
    plain.ffn_hidden_size = each.ffn;
    if (model == plain) return &each;
  }
  return nullptr;
}

const TorchSchedule* find_order(std::string_view schedule) {
  const auto* const found = std::ranges::find(kTorchSchedules, schedule, &TorchSchedule::ours);
  return found == kTorchSchedules.end() ? nullptr : found;
}

std::vector<int> layers_of(const Layout& layout) {
  std::vector<int> layers;
  for (const StageLayers& stage : layout.stages) layers.push_back(stage.layers);
  return layers;
}

std::string why_not_sharded(const ParameterState& state, int pipeline, int context) {
  const bool replicated = strategy_of(state) == ShardingStrategy::kNoShard && context == 1;
  if (replicated) return "";
  ParameterState own = state;
  shard_as_torchtitan(pipeline, context, own);
  if (strategy_of(own) != strategy_of(state)) {
    return "its data and context ranks divide all (FSDP: optim_grads_params) or, data ranks "
           "alone, nothing";
  }
  if (own.reduce_every_microbatch != state.reduce_every_microbatch) {
    return pipeline > 1 ? "in a pipeline it reduces gradients once (reduce_every_microbatch: false)"
                        : "without a pipeline it reduces gradients in every microbatch";
  }
  return "";
}

std::string why_not_divided(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const LayerContext& context = scenario.modelled->context;
  if (is_sharded(scenario.vocabulary)) return "the vocabulary stands on the first and last stage";
  const bool known =
      context.exchange == ContextExchange::kAllGather || context.exchange == ContextExchange::kRing;
  if (context.context > 1 && !known) {
    return fmt::format("context ranks gather keys and values or pass them on, not {}",
                       to_text(context.exchange));
  }
  if (scenario.parallel.pipeline > 1 && !find_stage_ends(layers_of(*made.layout))) {
    return "layers stand on its stages as evenly as they can, but for those that the first and the "
           "last hold less";
  }
  return why_not_sharded(scenario.modelled->state, scenario.parallel.pipeline, context.context);
}

RecomputedLayers recomputed_layers_of(const ScheduleChoice& choice) {
  return choice.recompute ? choice.recompute->layers : RecomputedLayers{};
}

std::string recompute_text(const ScheduleChoice& choice) {
  const RecomputeGranularity recompute = granularity_of(choice);
  const int every = recomputed_layers_of(choice).every;
  if (recompute == RecomputeGranularity::kNone) return "mode = \"none\"\n";
  const bool full = recompute == RecomputeGranularity::kFull;
  if (full && every == 1) return "mode = \"full\"\n";
  return fmt::format("mode = \"selective\"\nselective_ac_option = \"{}\"\n",
                     full ? std::to_string(every) : "op");
}

std::string why_not_run(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const RecomputeGranularity recompute = granularity_of(made.choice);
  if (recompute != RecomputeGranularity::kNone && recompute != RecomputeGranularity::kFull &&
      recompute != RecomputeGranularity::kPointwise) {
    return fmt::format("it recomputes nothing, all, or what costs no matmul, not {}",
                       to_text(recompute));
  }
  if (made.choice.recompute && made.choice.recompute->chunks) {
    return "it recomputes in all stages of a rank or in none";
  }
  const RecomputedLayers layers = recomputed_layers_of(made.choice);
  if (layers.first > 0 || layers.group > 1 || layers.encoder || layers.others.of_modules()) {
    return "it recomputes all layers of a stage or every n-th, each by itself";
  }
  if (layers.every > 1 && chunks_of(made.choice) > 1) {
    return "it counts every n-th layer through all stages of a rank";
  }
  if (made.choice.offload) return "its activations stay on the GPU";
  if (scenario.sync == OptimizerSync::kPostValidation) return "it has no post-validation";
  return why_not_set_up(*scenario.modelled, scenario.roofline->overlap);
}

bool splits_backward(const ScheduleChoice& choice) {
  return choice.program ? !choice.program->whole_backwards() : !schedule_of(choice).whole_backward;
}

void add_pipeline(const Case& made, std::string& text) {
  const TorchSchedule& order = *find_order(made.choice.name);
  const std::vector<int> layers = layers_of(*made.layout);
  const StageEnds ends = find_stage_ends(layers).value_or(StageEnds{});
  text += fmt::format("pipeline_parallel_schedule = \"{}\"\n", order.theirs);
  text += fmt::format("pipeline_parallel_microbatch_size = {}\n",
                      *made.scenario->batch.micro_batch_size);
  text += fmt::format("pipeline_parallel_first_stage_less_layers = {}\n", ends.first);
  text += fmt::format("pipeline_parallel_last_stage_less_layers = {}\n", ends.last);
  if (order.stages != StagesOfRank::kAny) return;
  const int all = made.scenario->modelled->model.num_layers + ends.first + ends.last;
  const int stages = static_cast<int>(layers.size());
  text += fmt::format("pipeline_parallel_layers_per_stage = {}\n", (all + stages - 1) / stages);
}

void add_degrees(const Case& made, std::string& text) {
  const Scenario& scenario = *made.scenario;
  const ParallelSizes& sizes = scenario.parallel;
  const Modelled& modelled = *scenario.modelled;
  const bool divided = modelled.state.sharded_weights;
  const int shards = divided ? std::min(modelled.state.shards(), sizes.data) : 1;
  text += fmt::format("data_parallel_shard_degree = {}\n", shards);
  text += fmt::format("data_parallel_replicate_degree = {}\n", sizes.data / shards);
  text += fmt::format("tensor_parallel_degree = {}\n", sizes.tensor);
  text += fmt::format("context_parallel_degree = {}\n", sizes.context);
  text += fmt::format("pipeline_parallel_degree = {}\n", sizes.pipeline);
  if (sizes.tensor > 1 && !modelled.context.sequence_parallel) {
    text += "enable_sequence_parallel = false\n";
  }
  if (sizes.context > 1) {
    const bool ring = modelled.context.exchange == ContextExchange::kRing;
    text +=
        fmt::format("context_parallel_rotate_method = \"{}\"\n", ring ? "alltoall" : "allgather");
  }
  if (divided) {
    const bool reshards = modelled.state.reshard_after_forward;
    const bool usual = reshards == reshards_by_default(sizes.pipeline);
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        usual ? "default" : (reshards ? "always" : "never"));
  }
}

}  // namespace

std::string why_no_flavor(const Transformer& model) {
  if (flavor_of(model) != nullptr) return "";
  return fmt::format("{} is none of the flavours of its llama3 (8B, 70B, 405B)",
                     model.name.empty() ? "the model" : model.name);
}

std::string why_not_scheduled(const std::string& schedule, bool blocking) {
  const TorchSchedule* order = find_order(schedule);
  if (order == nullptr) return fmt::format("torch.distributed.pipelining has no {}", schedule);
  const bool waits = order->waits && find_schedule(schedule)->calls.has_value();
  if (waits == blocking) return "";
  return waits ? fmt::format("{} waits for its messages (framework.transfers: blocking)",
                             order->theirs)
               : fmt::format("{} waits for no messages", order->theirs);
}

std::string why_not_set_up(const Modelled& modelled, const Overlap& overlap) {
  const LayerContext& context = modelled.context;
  const ParameterState& state = modelled.state;
  if (overlap.tensor || overlap.gradient_reduce || overlap.parameter_gather) {
    return "what FSDP overlaps has no settings (cost.overlap_grad_reduce, overlap_param_gather, "
           "tp_comm_overlap)";
  }
  if (!context.flash_attention || context.dropout) return "it has flash attention and no dropout";
  if (!context.fused_gate) return "no setting of it takes SwiGLU apart (bias_swiglu_fusion)";
  if (context.attention_output_bits > 0) {
    return "no setting of it keeps attention's output in fewer bits";
  }
  if (context.fused_loss) return "no setting of it fuses the loss (cross_entropy_loss_fusion)";
  if (context.offloaded.any()) return "it offloads no modules";
  if (context.adapter_rank > 0) return "adapters alone trained (LoRA) are not written";
  if (modelled.precision != "bf16") return "precision other than bf16 is not written";
  const OptimizerState plain;
  const OptimizerState& own = state.optimizer;
  if (!state.gradients_in_fp32 || own.bytes() != plain.bytes() || own.host_fraction > 0) {
    return "it holds gradients and the optimizer's states in fp32 on the GPU";
  }
  return "";
}

std::string why_not_torchtitan(const Case& made) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.modelled || !scenario.roofline || !scenario.batch.seq_length) {
    return "a job file names a model and a seq_length";
  }
  if (auto why = why_no_flavor(scenario.modelled->model); !why.empty()) return why;
  if (scenario.batch.unequal) return "a job file has samples of one length";
  if (scenario.parallel.pipeline > 1) {
    auto why = why_not_scheduled(made.choice.name, made.blocking.has_value());
    if (!why.empty()) return why;
  } else if (chunks_of(made.choice) > 1) {
    return "without a pipeline there is one stage";
  } else if (splits_backward(made.choice)) {
    return "without a pipeline its backward runs whole";
  }
  if (auto why = why_not_run(made); !why.empty()) return why;
  return why_not_divided(made);
}

void shard_as_torchtitan(int pipeline, int context, ParameterState& state) {
  const bool several = state.data * context > 1;
  set_sharding(several ? ShardingStrategy::kOptimGradsParams : ShardingStrategy::kNoShard, state);
  state.reduce_every_microbatch = pipeline == 1 || !several;
}

std::string torchtitan_text(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const int micro = *scenario.batch.micro_batch_size;
  const int m = scenario.batch.microbatches;
  std::string text = fmt::format(
      "# torchtitan v0.2.2, the last release with job files\n"
      "[model]\nname = \"llama3\"\nflavor = \"{}\"\n\n[training]\n",
      flavor_of(scenario.modelled->model)->name);
  text +=
      fmt::format("local_batch_size = {}\n", scenario.parallel.pipeline > 1 ? micro * m : micro);
  text += fmt::format("global_batch_size = {}\n", 1L * micro * m * scenario.parallel.data);
  text += fmt::format("seq_len = {}\n\n[parallelism]\n", *scenario.batch.seq_length);
  add_degrees(made, text);
  if (scenario.parallel.pipeline > 1) add_pipeline(made, text);
  return text + "\n[activation_checkpoint]\n" + recompute_text(made.choice);
}

}  // namespace pipesim
