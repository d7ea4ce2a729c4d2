// DeepSpeed's JSON as a scenario (deepspeed/runtime/config.py and constants.py). The file says
// batch, precision, ZeRO and what is recomputed; model and degrees are in the program that loads
// it, and are named as missing unless they stand beside it.
#include <algorithm>
#include <fmt/format.h>

#include "models/layer_context.h"
#include "sim/core/letters.h"
#include "sim/interop/frameworks/draft.h"

namespace pipesim {
namespace {

constexpr const char* kDropsTokens = "data_efficiency.data_routing.random_ltd.enabled";
constexpr const char* kMostTokens =
    "data_efficiency.data_routing.random_ltd.random_ltd_schedule.max_value";

// "auto" is filled in by the program.
std::optional<long> known_number(Settings& settings, std::initializer_list<const char*> names) {
  const auto text = settings.text(names);
  return text && *text != "auto" ? settings.number(names, 1) : std::nullopt;
}

bool is_known_set(Settings& settings, std::initializer_list<const char*> names) {
  const auto text = settings.text(names);
  return text && *text != "auto" && settings.is_set(names);
}

// The precision that the settings leave to the trainer; null where they leave none.
const char* left_open(Settings& settings) {
  for (const char* name : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"}) {
    if (settings.text({name}) == "auto") return name;
  }
  return nullptr;
}

struct Ranks {
  long pipeline = 1, tensor = 1, context = 1;
};

Ranks put_ranks(Settings& settings, long zero, Draft& draft) {
  Ranks ranks;
  const auto stages = known_number(settings, {"num_stages", "pipeline.stages"});
  // Its pipeline refuses ZeRO 2 and 3 (PipelineModule's engine).
  if (!stages && zero < 2)
    draft.missing.emplace_back("the stages, which the program gives: num_stages=N");
  ranks.pipeline = stages.value_or(1);
  ranks.tensor =
      known_number(settings, {"tensor_parallel_size", "tensor_parallel.autotp_size"}).value_or(1);
  ranks.context = known_number(settings, {"sequence_parallel_size"}).value_or(1);
  put(draft.parallel, "pipeline_model_parallel_size", ranks.pipeline);
  if (ranks.tensor > 1) put(draft.parallel, "tensor_model_parallel_size", ranks.tensor);
  // Saved inputs are divided among tensor ranks, of which there is one.
  if (ranks.tensor == 1) (void)settings.find({"activation_checkpointing.partition_activations"});
  if (ranks.context > 1) {
    put(draft.parallel, "context_parallel_size", ranks.context);
    put(draft.parallel, "cp_comm_type", to_text(ContextExchange::kHeads));  // Ulysses
  }
  return ranks;
}

// train_batch_size = micro batch x accumulation x data-parallel ranks.
struct Samples {
  std::optional<long> all, micro, steps, data;

  // The third of three whose product is known.
  void complete() {
    if (!all) return;
    fill(data, micro, steps);
    fill(micro, steps, data);
    fill(steps, micro, data);
  }

 private:
  void fill(std::optional<long>& to, const std::optional<long>& a,
            const std::optional<long>& b) const {
    if (!to && a && b && *all % (*a * *b) == 0) to = *all / (*a * *b);
  }
};

// Data ranks, micro batch and accumulation; with all samples known the last follows from the
// others.
void put_parts(const Samples& samples, bool all_asked, Draft& draft) {
  std::vector<std::string> missing;
  const auto put_or_miss = [&missing](Section& section, const char* key,
                                      const std::optional<long>& value, const char* question) {
    if (value) {
      put(section, key, *value);
    } else {
      missing.emplace_back(question);
    }
  };
  put_or_miss(draft.parallel, "data_parallel_size", samples.data,
              "the number of GPUs: world_size=N");
  put_or_miss(draft.batch, "micro_batch_size", samples.micro, "train_micro_batch_size_per_gpu=N");
  put_or_miss(draft.batch, "num_microbatches", samples.steps, "gradient_accumulation_steps=N");
  if (samples.all && missing.size() == 1 && samples.data) {
    missing[0] = fmt::format(
        "a number of GPUs whose {} data-parallel ranks divide the train_batch_size of {} "
        "together with the micro batch or the accumulation: world_size=N",
        *samples.data, *samples.all);
  } else if (all_asked || (samples.all && missing.size() > 1)) {
    missing.pop_back();
  }
  draft.missing.insert(draft.missing.end(), missing.begin(), missing.end());
}

void put_samples_and_data(const Ranks& ranks, Settings& settings, Draft& draft) {
  Samples samples{known_number(settings, {"train_batch_size"}),
                  known_number(settings, {"train_micro_batch_size_per_gpu"}),
                  known_number(settings, {"gradient_accumulation_steps"}),
                  {}};
  const auto world = known_number(settings, {"world_size"});
  const long of_model = ranks.pipeline * ranks.tensor * ranks.context;
  if (world && *world % of_model == 0) samples.data = *world / of_model;
  samples.complete();
  if (samples.all && samples.data && samples.micro && samples.steps &&
      *samples.all != *samples.data * *samples.micro * *samples.steps) {
    const Setting& all = *settings.find({"train_batch_size"});
    throw InputError(
        all.where,
        fmt::format("train_batch_size: expected {} x {} x {} = {}, micro batch x accumulation "
                    "x data-parallel ranks, not {}",
                    *samples.micro, *samples.steps, *samples.data,
                    *samples.micro * *samples.steps * *samples.data, *samples.all));
  }
  put_parts(samples, settings.asks("train_batch_size"), draft);
  auto length = known_number(settings, {"seq_length"});
  if (!length && is_known_set(settings, {kDropsTokens}))
    length = known_number(settings, {kMostTokens});
  if (length) {
    put(draft.batch, "seq_length", *length);
  } else {
    draft.missing.emplace_back("the tokens of a sample: seq_length=N");
  }
}

// ZeRO's stage; MiCS divides within groups of ranks.
void put_zero(const Ranks& ranks, long zero, Settings& settings, Draft& draft) {
  ParameterState state;
  if (zero > 1 && ranks.pipeline > 1) {
    draft.not_modelled.push_back(
        fmt::format("zero_optimization.stage {}: DeepSpeed's pipeline runs with stages 0 and 1 "
                    "alone; the optimizer's state is sharded",
                    zero));
    zero = 1;
  }
  set_sharding(static_cast<ShardingStrategy>(std::clamp(zero, 0L, 3L)), state);
  const auto group = settings.real({"zero_optimization.mics_shard_size"}).value_or(-1);
  if (zero == 3 && group > 0) state.shard_degree = static_cast<int>(group);
  put_sharding(draft.memory, state);
  if (zero == 2 && !settings.is_set({"zero_optimization.overlap_comm"})) {
    draft.notes.emplace_back("gradients are scattered behind the backward, as with overlap_comm");
  }
}

// Its CPU-Adam updates a share of the states on the host; of states on disks nothing is known.
void put_offload(Settings& settings, Draft& draft) {
  const bool old = settings.is_set({"zero_optimization.cpu_offload"});
  const std::string device =
      settings.text({"zero_optimization.offload_optimizer.device"}).value_or(old ? "cpu" : "none");
  const double ratio = settings.real({"zero_optimization.offload_optimizer.ratio"}).value_or(1);
  if (device == "cpu") {
    if (ratio > 0) put(draft.memory, "optimizer_offload_fraction", fmt::format("{:g}", ratio));
  } else if (device != "none") {
    draft.not_modelled.push_back(
        fmt::format("zero_optimization.offload_optimizer.device {}", device));
  }
}

// A run in two parts that cost differently: NAME=PART says which of them is meant.
std::optional<std::string> part_of_run(const char* name, const Setting& because,
                                       std::vector<std::string> parts, Settings& settings) {
  auto asked = settings.text({name});
  if (asked && std::ranges::count(parts, *asked) > 0) return asked;
  if (asked) {
    const Setting& given = *settings.find({name});
    throw InputError(given.where, fmt::format("{}: expected {} or {}, not '{}'", name, parts[0],
                                              parts[1], *asked));
  }
  settings.ask({{because.name}, {name}, std::move(parts), because.where});
  return std::nullopt;
}

// 1-bit Adam and LAMB exchange whole gradients up to freeze_step, as Adam does, and a bit a number
// of momentum behind it (deepspeed/runtime/fp16/onebit).
void put_one_bit_optimizer(const Setting& type, Settings& settings, Draft& draft) {
  constexpr long kFreezeStep = 100000;  // its default
  const long steps = known_number(settings, {"optimizer.params.freeze_step"}).value_or(kFreezeStep);
  const auto part = part_of_run("optimizer_stage", type, {"warmup", "compressed"}, settings);
  if (!part) return;
  if (*part == "compressed") {
    not_understood(draft, "optimizer.type",
                   fmt::format("optimizer.type {} behind step {}: momentum in a bit a number",
                               type.text(), steps));
    return;
  }
  draft.notes.push_back(
      fmt::format("the first {} steps of {}, which exchange whole gradients", steps, type.text()));
  draft.not_modelled.push_back(
      fmt::format("optimizer.type {}: the errors that it keeps, 4 bytes a parameter and as many "
                  "again over the data ranks",
                  type.text()));
}

void put_optimizer(Settings& settings, Draft& draft) {
  const Setting* type = settings.find({"optimizer.type"});
  const std::string name = small_letters(type == nullptr ? "Adam" : type->text());
  if (name == "onebitadam" || name == "onebitlamb") {
    put_one_bit_optimizer(*type, settings, draft);
  } else {
    stop_at_optimizer("optimizer.type", type == nullptr ? name : type->text(), draft);
  }
}

// Random layerwise token dropping: layers see a number of tokens that grows up to max_value.
void put_dropped_tokens(Settings& settings, Draft& draft) {
  const Setting* dropping = settings.find({kDropsTokens});
  const auto part = settings.text({"random_ltd"});
  if (dropping == nullptr && settings.asks(kDropsTokens)) {
    if (part) return;
    settings.ask(
        {{kDropsTokens}, {"random_ltd"}, {"after", "during"}, settings.place(kDropsTokens)});
    return;
  }
  if (!is_known_set(settings, {kDropsTokens})) return;
  for (const char* of :
       {"total_layer_num", "random_ltd_layer_num", "random_ltd_layer_id", "model_mask_name",
        "model_type", "hidden_state_order", "random_ltd_schedule.min_value",
        "random_ltd_schedule.schedule_type", "random_ltd_schedule.schedule_config.require_steps",
        "random_ltd_schedule.schedule_config.seq_per_step"}) {
    const std::string path = std::string("data_efficiency.data_routing.random_ltd.") + of;
    (void)settings.find({path.c_str()});
  }
  const long most = known_number(settings, {kMostTokens}).value_or(0);
  const long length = known_number(settings, {"seq_length"}).value_or(most);
  if (!part_of_run("random_ltd", *dropping, {"after", "during"}, settings)) return;
  if (part == "after" && most >= length) {
    draft.notes.emplace_back(
        "the steps behind the schedule of random_ltd, whose layers see all tokens");
    return;
  }
  not_understood(draft, "random_ltd",
                 fmt::format("random_ltd {}: layers see {} of {} tokens", *part,
                             part == "after" ? std::to_string(most) : "some", length));
}

// Sequences that grow up to max_difficulty tokens (deepspeed/runtime/data_pipeline).
void put_curriculum(Settings& settings, Draft& draft) {
  if (!is_known_set(settings, {"curriculum_learning.enabled"})) return;
  const Setting& enabled = *settings.find({"curriculum_learning.enabled"});
  for (const char* of : {"curriculum_type", "schedule_type", "schedule_config.difficulty_step",
                         "schedule_config.total_curriculum_step", "schedule_config.root_degree"}) {
    const std::string path = std::string("curriculum_learning.") + of;
    (void)settings.find({path.c_str()});
  }
  const auto most = known_number(settings, {"curriculum_learning.max_difficulty"});
  const long length = known_number(settings, {"seq_length"}).value_or(most.value_or(0));
  const auto part = part_of_run("curriculum", enabled, {"after", "during"}, settings);
  if (!part) return;
  if (*part == "after" && most.value_or(length) >= length) {
    draft.notes.emplace_back(
        "the steps behind the schedule of curriculum_learning, of whole length");
    return;
  }
  not_understood(draft, "curriculum",
                 fmt::format("curriculum {}: sequences of {} of {} tokens", *part,
                             *part == "after" ? std::to_string(*most) : "some", length));
}

// A student of fewer layers than its teacher.
void put_fewer_layers(Settings& settings, Draft& draft) {
  const bool fewer = is_known_set(settings, {"compression_training.layer_reduction.enabled"});
  const auto layers =
      known_number(settings, {"compression_training.layer_reduction.keep_number_layer"});
  if (!fewer || !layers || draft.model_name.empty()) return;
  put(draft.model, "base", draft.model_name);
  put(draft.model, "num_layers", *layers);
  draft.model_name.clear();
  draft.notes.emplace_back("the student of layer_reduction alone, without a pass of its teacher");
}

void put_state(const Ranks& ranks, long zero, Settings& settings, Draft& draft) {
  const bool fp16 = is_known_set(settings, {"fp16.enabled"});
  const bool bf16 = is_known_set(settings, {"bf16.enabled", "bfloat16.enabled"});
  put(draft.memory, "kind", "model");
  put(draft.memory, "precision", fp16 ? "fp16" : bf16 ? "bf16" : "fp32");
  const char* open = fp16 || bf16 ? nullptr : left_open(settings);
  if (open != nullptr) {
    draft.missing.push_back(fmt::format("{}=true or false, where the file says auto", open));
  } else if (!fp16 && !bf16) {
    draft.notes.emplace_back("fp32, which it is where the settings enable neither bf16 nor fp16");
  }
  const auto sums = settings.text({"data_types.grad_accum_dtype"});
  if (sums && *sums != "auto") {
    put_flag(draft.memory, "accumulate_allreduce_grads_in_fp32", *sums == "fp32");
  }
  put_zero(ranks, zero, settings, draft);
  put_optimizer(settings, draft);
  put_offload(settings, draft);
  const auto interval = settings.number({"pipeline.activation_checkpoint_interval"}).value_or(0);
  if (interval > 0) draft.recompute = "full";
  if (interval > 1) {
    draft.recompute = fmt::format("{{granularity: full, num_layers: {}}}", interval);
  }
}

}  // namespace

Draft deepspeed_draft(Settings settings, const std::string& cluster) {
  Draft draft;
  draft.origin = fmt::format("{}, DeepSpeed's settings", settings.file());
  draft.cluster = cluster;
  if (const auto model = catalogue_model(settings)) draft.model_name = model->name;
  if (draft.model_name.empty()) {
    draft.missing.emplace_back("the model, by a name of `pipesim list models`: model=NAME");
  }
  const long zero = settings.number({"zero_optimization.stage"}, 0).value_or(0);
  const Ranks ranks = put_ranks(settings, zero, draft);
  put_samples_and_data(ranks, settings, draft);
  put_state(ranks, zero, settings, draft);
  put_dropped_tokens(settings, draft);
  put_curriculum(settings, draft);
  put_fewer_layers(settings, draft);
  if (settings.is_set({"zero_optimization.overlap_comm"}) && !cluster.empty()) {
    put(draft.cost, "kind", "roofline");
    put_flag(draft.cost, "overlap_grad_reduce", true);
  }
  if (cluster.empty()) draft.missing.emplace_back("the cluster: --cluster NAME");
  take_rest(settings, draft);
  return draft;
}

}  // namespace pipesim
