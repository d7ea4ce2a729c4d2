#include "sim/read/modelled.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/read/anchor.h"
#include "sim/read/calibration.h"
#include "sim/read/model.h"
#include "sim/read/optimizer_state.h"
#include "sim/read/software.h"

namespace pipesim {
namespace {

const std::vector<std::string> kKinds{"given", "model"};

// The ways to split layers exclude each other.
void read_split(YamlMap& map, LayerSplit& split) {
  std::string before;
  const auto take = [&](const char* key, LayerSplit::Way way) {
    auto value = map.find(key);
    if (!value) return value;
    const bool even = way == LayerSplit::Way::kEven && split.way == way;
    if (!before.empty() && !even) {
      value->fail(fmt::format("stands beside '{}': give one of the two", before));
    }
    before = key;
    split.way = way;
    split.where = value->where();
    return value;
  };
  constexpr long kMost = 1 << 16;
  if (const auto list = take("num_layers_per_stage", LayerSplit::Way::kListed)) {
    for (const YamlValue& each : list->list()) {
      split.listed.push_back(static_cast<int>(each.integer(0, kMost)));
    }
    if (split.listed.empty()) list->fail("expected the layers of every stage");
  }
  if (const auto text = take("pipeline_model_parallel_layout", LayerSplit::Way::kString)) {
    split.text = text->text();
  }
  if (const auto balance = take("balance", LayerSplit::Way::kBalanced)) {
    static const std::vector<std::string> kAuto{"auto"};
    (void)balance->choice(kAuto);
  }
  const auto number = [&](const char* key, std::optional<int>& to) {
    const auto value = take(key, LayerSplit::Way::kEven);
    if (value) to = static_cast<int>(value->integer(0, kMost));
  };
  number("decoder_first_pipeline_num_layers", split.even.first_device);
  number("decoder_last_pipeline_num_layers", split.even.last_device);
  const auto flag = [&](const char* key, bool& to) {
    const auto value = take(key, LayerSplit::Way::kEven);
    if (value) to = value->flag();
  };
  flag("account_for_embedding_in_pipeline_split", split.even.count_embedding);
  flag("account_for_loss_in_pipeline_split", split.even.count_loss);
}

// Ranks that divide one copy, or into how many copies (Megatron-Core's word) the data ranks fall.
void read_groups(YamlMap& map, ParameterState& state) {
  const auto degree = map.find("data_parallel_shard_degree");
  const auto instances = map.find("num_distributed_optimizer_instances");
  for (const auto& given : {degree, instances}) {
    if (given && !state.distributed_optimizer) {
      given->fail("needs a data_parallel_sharding_strategy that divides something");
    }
  }
  if (degree) state.shard_degree = static_cast<int>(degree->integer(1, 1 << 16));
  if (!instances) return;
  if (degree) instances->fail("stands beside 'data_parallel_shard_degree': give one of the two");
  const int copies = static_cast<int>(instances->integer(1, 1 << 16));
  if (state.data % copies != 0) {
    instances->fail(fmt::format("does not divide data_parallel_size {}", state.data));
  }
  if (copies > 1) state.shard_degree = state.data / copies;
}

// How the data ranks divide what parameters take; the strategy says more than the flag.
void read_sharding(YamlMap& map, ParameterState& state) {
  const auto flag = map.find("use_distributed_optimizer");
  if (flag) state.distributed_optimizer = flag->flag();
  const auto strategy = map.find("data_parallel_sharding_strategy");
  if (strategy) {
    static const std::vector<std::string> kStrategies(kShardingStrategies.begin(),
                                                      kShardingStrategies.end());
    const std::string chosen = strategy->choice(kStrategies);
    const auto stage = std::ranges::find(kStrategies, chosen) - kStrategies.begin();
    set_sharding(static_cast<ShardingStrategy>(stage), state);
    if (flag && flag->flag() && !state.distributed_optimizer) {
      strategy->fail("divides no state, and 'use_distributed_optimizer' does");
    }
  }
  read_groups(map, state);
  const auto of_weights = [&](const char* key, bool& to) {
    const auto value = map.find(key);
    if (!value) return;
    if (!state.sharded_weights) {
      value->fail("is of data_parallel_sharding_strategy: optim_grads_params");
    }
    to = value->flag();
  };
  of_weights("reshard_after_forward", state.reshard_after_forward);
  of_weights("reduce_every_microbatch", state.reduce_every_microbatch);
}

// The matmuls' precision. Requires one of precision_names().
Precision precision_of(const std::string& name) {
  using enum Precision;
  static constexpr std::array kPrecisions{kBf16, kBf16, kFp32, kFp8, kFp8, kFp4};
  const std::vector<std::string>& names = precision_names();
  return kPrecisions[std::ranges::find(names, name) - names.begin()];
}

void read_precision(YamlMap& map, Modelled& modelled) {
  const std::vector<std::string>& names = precision_names();
  const auto precision = map.find("precision");
  if (precision) modelled.precision = precision->choice(names);
  const std::string& chosen = modelled.precision;
  modelled.context.precision = precision_of(chosen);
  modelled.block_scaled = chosen == "mxfp8" || chosen == "nvfp4";
  if (const auto autocast = map.find("autocast")) {
    modelled.context.fp32_weights = autocast->flag();
    if (modelled.context.fp32_weights && chosen == "fp32") {
      autocast->fail("is of matmuls in fewer bits than the weights: expected bf16, fp16 or fp8");
    }
  }
  modelled.state.weight_bytes = weight_bytes(modelled.context);
  // Megatron-LM sums gradients in fp32 where weights are bf16, and as weights are in fp16.
  modelled.state.gradients_in_fp32 = chosen != "fp16";
  if (modelled.state.in_fp32()) modelled.state.optimizer.main_params = 0;
}

void read_fp8_parameters(YamlMap& map, LayerContext& context) {
  const auto alone = map.find("fp8_param_gather");
  if (!alone) return;
  context.fp8_parameters = alone->flag();
  if (!context.fp8_parameters) return;
  if (context.precision != Precision::kFp8) alone->fail("is of precision fp8 or mxfp8");
  if (context.fp32_weights) {
    alone->fail("stands in place of 'autocast': weights are in fp8 alone or in fp32");
  }
}

// Weights in fp32 are whole, and their gradients are as they are.
void check_autocast(YamlMap& map, const Modelled& modelled) {
  if (!modelled.context.fp32_weights) return;
  const auto autocast = map.find("autocast");
  if (modelled.model.traced) autocast->fail("is not known of traced models");
  if (modelled.state.sharded_weights) {
    autocast->fail("stands in place of optim_grads_params, whose weights are gathered in 16 bits");
  }
  const auto sums = map.find("accumulate_allreduce_grads_in_fp32");
  if (sums && !sums->flag()) sums->fail("gradients of 'autocast' are in fp32, as its weights");
}

void read_memory(YamlMap& map, Modelled& modelled) {
  read_precision(map, modelled);
  set_flag(map, "accumulate_allreduce_grads_in_fp32", modelled.state.gradients_in_fp32);
  read_sharding(map, modelled.state);
  check_autocast(map, modelled);
  read_fp8_parameters(map, modelled.context);
  const bool bf16_weights = modelled.precision != "fp16" && !modelled.context.fp8_parameters &&
                            !modelled.context.fp32_weights;
  read_optimizer_state(map, bf16_weights, modelled.state);
  // Its kernels take 16 bits.
  modelled.context.flash_attention = modelled.context.precision != Precision::kFp32;
  set_flag(map, "flash_attention", modelled.context.flash_attention);
  set_flag(map, "dropout", modelled.context.dropout);
  set_flag(map, "cross_entropy_loss_fusion", modelled.context.fused_loss);
  set_flag(map, "bias_swiglu_fusion", modelled.context.fused_gate);
  read_kept_activations(map, modelled.context);
  if (const auto rank = map.find("lora_rank")) {
    modelled.context.adapter_rank = static_cast<int>(rank->integer(0, 1 << 16));
  }
  if (const auto frozen = map.find("frozen")) {
    modelled.context.frozen = frozen->flag();
    const bool projects = modelled.model.encoder && modelled.context.adapter_rank == 0;
    if (modelled.context.frozen && !projects) {
      frozen->fail(
          "leaves nothing to train: expected a model with an encoder, whose projector "
          "trains, and no lora_rank");
    }
  }
  const auto margin = map.find("margin");
  if (margin) modelled.margin = margin->bytes();
  if (const auto capacity = map.find("capacity")) {
    if (margin) margin->fail("is of the GPU's memory, which 'capacity' stands for");
    modelled.capacity = capacity->bytes();
    if (*modelled.capacity == Bytes(0)) capacity->fail("a GPU has memory: expected more than 0");
  }
}

// The names of what it multiplies in. Both of 2 bytes are one to the costs.
std::vector<std::string> precisions_of(const Gpu& gpu) {
  std::vector<std::string> names = precision_names();
  std::erase_if(names, [&gpu](const std::string& name) {
    return !gpu.has(precision_of(name)) || (name == "bf16" && !gpu.has_bf16);
  });
  return names;
}

// At the precision that is asked for, where one is.
void check_precision(YamlMap& root, const Scenario& scenario) {
  const Gpu& gpu = scenario.hardware->gpu;
  const auto memory = root.find("memory");
  const auto asked = memory ? YamlMap(*memory).find("precision") : std::nullopt;
  const std::string precision = asked ? asked->text() : "bf16";
  const bool of_the_card = precision != "bf16" || gpu.has_bf16;
  if (of_the_card && gpu.has(scenario.modelled->context.precision)) return;
  (asked ? *asked : root.value())
      .fail(fmt::format("{} has no {}; it has {}", gpu.name, precision,
                        fmt::join(precisions_of(gpu), ", ")));
}

// The generation of attention, the framework's unless it is asked for.
void read_attention_kernel(YamlMap& root, YamlMap& map, const Gpu& gpu, Modelled& modelled,
                           Software& software) {
  const auto memory = root.find("memory");
  const auto stated = memory ? YamlMap(*memory).find("flash_attention") : std::nullopt;
  const auto asked = map.find("attention");
  if (asked) software.attention = attention_of(*asked);
  const bool unfused = software.attention == AttentionKernel::kUnfused;
  if (!asked) {
    if (unfused && !stated) modelled.context.flash_attention = false;
    return;
  }
  if (stated && stated->flag() == unfused) {
    asked->fail(unfused ? "stands beside 'memory.flash_attention: true'"
                        : "stands beside 'memory.flash_attention: false'");
  }
  if (!unfused && gpu.attention_kernels[software.attention][0] <= 0) {
    asked->fail(fmt::format("{} does not run {}", gpu.name,
                            kAttentionKernels[static_cast<size_t>(software.attention)]));
  }
  modelled.context.flash_attention = !unfused;
}

// The share of a release's waits for the host that stays. HybridEP leaves on the GPU what goes
// where, and stands where DeepEP does not run.
double read_waits(YamlMap& map, const Hardware& hardware, bool flex, const Release& generation) {
  static const std::vector<std::string> kBackends{"deepep", "hybridep"};
  const std::string missing = why_no_deepep(hardware);
  std::string name = missing.empty() ? "deepep" : "hybridep";
  if (const auto backend = map.find("moe_flex_dispatcher_backend")) {
    if (!flex) backend->fail("is of moe_token_dispatcher_type: flex");
    name = backend->choice(kBackends);
    if (name == "deepep" && !missing.empty()) backend->fail(missing + ": expected hybridep");
  }
  if (!flex) return 1;
  return name == "hybridep" ? 0 : generation.deepep;
}

// The generation of the framework, and how it runs mixtures of experts.
void read_framework(YamlMap& root, YamlMap& map, const Hardware& hardware, Modelled& modelled,
                    RooflineCost& cost) {
  if (const auto dispatcher = map.find("moe_token_dispatcher_type")) {
    static const std::vector<std::string> kDispatchers{"alltoall", "flex"};
    modelled.context.flex_dispatcher = dispatcher->choice(kDispatchers) == "flex";
  }
  const auto exchanged = [&map](const char* key, bool& in_fp8) {
    static const std::vector<std::string> kExchanged{"bf16", "fp8", "mxfp8"};
    if (const auto dtype = map.find(key)) in_fp8 = dtype->choice(kExchanged) != "bf16";
  };
  exchanged("moe_dispatch_fwd_dtype", modelled.context.fp8_dispatch);
  exchanged("moe_combine_bwd_dtype", modelled.context.fp8_combine_gradient);
  const auto software = map.find("software");
  const Release generation =
      software ? read_software(*software) : catalogue_software().front().software;
  cost.software = generation;
  if (const auto launch = map.find("launch")) cost.software.launch = launch_mode_of(*launch);
  read_attention_kernel(root, map, hardware.gpu, modelled, cost.software);
  bool forced = false;
  set_flag(map, "moe_router_force_load_balancing", forced);
  const auto& experts = modelled.model.experts;
  const bool padded = experts && experts->capacity_factor > 0;
  if (forced || padded) cost.software.fullest = 1;
  const double waits = read_waits(map, hardware, modelled.context.flex_dispatcher, generation);
  cost.software.routing = waits * cost.software.routing;
}

// How context ranks exchange keys and values.
void read_exchange(const std::optional<YamlValue>& exchange,
                   const std::optional<YamlValue>& hierarchy, ModelParallel& asked) {
  const auto read = [](const YamlValue& value) {
    static const std::vector<std::string> kKinds(kContextExchanges.begin(),
                                                 kContextExchanges.end());
    const auto kind = std::ranges::find(kKinds, value.choice(kKinds)) - kKinds.begin();
    return static_cast<ContextExchange>(kind);
  };
  if (exchange) asked.exchange_where = exchange->where();
  if (exchange && exchange->is_list()) {
    for (const YamlValue& each : exchange->list()) asked.exchanges.push_back(read(each));
  } else if (exchange) {
    asked.exchange = read(*exchange);
  }
  const bool both = asked.exchange == ContextExchange::kHeadsAndRing ||
                    std::ranges::count(asked.exchanges, ContextExchange::kHeadsAndRing) > 0;
  if (!hierarchy) {
    if (both) exchange->fail("needs hierarchical_context_parallel_sizes: [heads, ring]");
    return;
  }
  if (!both) hierarchy->fail("is of cp_comm_type: a2a+p2p");
  const std::vector<YamlValue> sizes = hierarchy->list();
  if (sizes.size() != asked.hierarchy.size()) {
    hierarchy->fail("expected two sizes: ranks that divide heads, and those of the ring");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    asked.hierarchy[i] = static_cast<int>(sizes[i].integer(1, 1 << 16));
  }
}

// Keys and values are repeated where ranks divide heads, and nowhere else.
void check_repeated(const YamlValue& repeated, const ModelParallel& asked) {
  const auto divides = [](ContextExchange exchange) {
    return exchange == ContextExchange::kHeads || exchange == ContextExchange::kHeadsAndRing;
  };
  const bool used = asked.exchanges.empty() ? divides(asked.exchange)
                                            : std::ranges::any_of(asked.exchanges, divides);
  if (used) return;
  const std::string other =
      asked.exchanges.empty() ? fmt::format(", not of {}", to_text(asked.exchange)) : "";
  repeated.fail(fmt::format("is of cp_comm_type a2a and a2a+p2p{}", other));
}

// Layers of one kind of attention exchange alike: their costs are one.
void take_exchange(const ModelParallel& asked, const Transformer& model, LayerContext& context) {
  context.exchange = asked.exchange;
  if (!asked.exchange_where || asked.exchanges.empty()) return;
  const auto layers = static_cast<size_t>(model.num_layers);
  if (asked.exchanges.size() != layers) {
    throw InputError(*asked.exchange_where,
                     fmt::format("names {} kinds for {} layers: give one, or one for each",
                                 asked.exchanges.size(), layers));
  }
  std::optional<ContextExchange> of_all;
  std::optional<ContextExchange> of_windows;
  for (size_t layer = 0; layer < layers; ++layer) {
    const Mixer mixer = mixer_of(layer_kind(model, static_cast<int>(layer)));
    if (mixer == Mixer::kNone) continue;
    const bool window = mixer == Mixer::kWindow;
    const ContextExchange own = asked.exchanges[layer];
    std::optional<ContextExchange>& kind = window ? of_windows : of_all;
    if (!kind) kind = own;
    if (*kind == own) continue;
    throw InputError(
        *asked.exchange_where,
        fmt::format("layer {} has {}, those before it whose attention sees {} have "
                    "{}: layers of one kind exchange alike here",
                    layer, to_text(own), window ? "a window" : "all tokens", to_text(*kind)));
  }
  context.exchange = of_all ? *of_all : of_windows.value_or(context.exchange);
  if (of_windows && *of_windows != context.exchange) context.window_exchange = of_windows;
}

// The host's seconds that a file measured are the least of a framework whose scenario states none.
void raise_host(YamlMap& map, const Calibration& calibration, Software& software) {
  const auto stated = map.find("software");
  const auto own = stated && stated->is_map() ? YamlMap(*stated).find("host") : std::nullopt;
  for (size_t mode = 0; mode < kLaunchModes.size(); ++mode) {
    if (own && YamlMap(*own).find(kLaunchModes[mode])) continue;
    Seconds& operation = software.operation[static_cast<LaunchMode>(mode)];
    operation = std::max(operation, calibration.host_operation[static_cast<LaunchMode>(mode)]);
  }
}

void read_measured_curves(YamlMap& map, Scenario& scenario, RooflineCost& cost) {
  auto numbers = *scenario.sources;
  cost.calibration = read_calibration_file(map.require("file", "a calibration file"), scenario.file,
                                           *scenario.hardware, numbers);
  scenario.sources = std::make_shared<const std::vector<Sourced>>(std::move(numbers));
  raise_host(map, *cost.calibration, cost.software);
  scenario.cluster->message_share = scenario.hardware->cluster.message_share;
  scenario.cluster->copy_share = scenario.hardware->cluster.copy_share;
}

}  // namespace

std::string why_no_flex(const Hardware& hardware) {
  // Between PCIe 5 (63 GB/s) and an NVLink of V100 to H800 (135 GB/s of messages and more). A
  // pair's link of AMD's mesh is below too: Megatron-LM's `flex` is NVIDIA's.
  constexpr BytesPerSecond kLeastNvlink{100e9};
  if (hardware.cluster.link_bandwidth >= kLeastNvlink) return "";
  return fmt::format("DeepEP and HybridEP need NVLink, which nodes of {} lack", hardware.name);
}

std::string why_no_deepep(const Hardware& hardware) {
  // The most GPUs that DeepEP's kernels for training join by NVLink: NUM_MAX_NVL_PEERS in
  // deepseek-ai/DeepEP, csrc/kernels/configs.cuh; by its issue 392 they do not run on GB200.
  constexpr int kMostPeers = 8;
  const int node = hardware.cluster.gpus_per_node;
  if (node <= kMostPeers) return "";
  return fmt::format("DeepEP joins at most {} GPUs by NVLink, and a node of {} has {}", kMostPeers,
                     hardware.name, node);
}

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> kNames{"bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"};
  return kNames;
}

ModelParallel read_model_parallel(YamlMap& parallel) {
  ModelParallel asked;
  const auto note = [&asked](const std::optional<YamlValue>& value) {
    if (value && !asked.asked) asked.asked = value->where();
  };
  const auto size = [&](const char* key) -> std::optional<int> {
    const auto value = parallel.find(key);
    note(value);
    return value ? std::optional(static_cast<int>(value->integer(1, 1 << 16))) : std::nullopt;
  };
  asked.context = size("context_parallel_size").value_or(1);
  const auto exchange = parallel.find("cp_comm_type");
  note(exchange);
  const auto hierarchy = parallel.find("hierarchical_context_parallel_sizes");
  note(hierarchy);
  read_exchange(exchange, hierarchy, asked);
  const auto repeated = parallel.find("kv_head_repeat");
  note(repeated);
  asked.repeats_keys = repeated && repeated->flag();
  if (asked.repeats_keys) check_repeated(*repeated, asked);
  asked.expert = size("expert_model_parallel_size").value_or(1);
  asked.expert_tensor = size("expert_tensor_parallel_size");
  const auto sequence = parallel.find("sequence_parallel");
  note(sequence);
  asked.sequence_parallel = sequence && sequence->flag();
  read_split(parallel, asked.split);
  if (!asked.asked && asked.split.where.line > 0) asked.asked = asked.split.where;
  return asked;
}

bool memory_is_modelled(YamlMap& root, const ModelParallel& asked) {
  const auto model = root.find("model");
  const auto memory = root.find("memory");
  bool modelled = model.has_value();
  if (memory) {
    YamlMap map(*memory);
    // Beside a model, bytes follow from it unless they are said to be given.
    const auto kind = model ? map.find("kind") : map.require("kind", "'given' or 'model'");
    modelled = !kind || kind->choice(kKinds) == "model";
    if (modelled && !model) kind->fail("needs a 'model'");
    if (!modelled && model) {
      model->fail(
          "nothing uses it where memory.kind is 'given': leave it out, or let that be 'model'");
    }
  }
  if (!modelled && asked.asked) {
    throw InputError(*asked.asked, "is for a scenario with a 'model'");
  }
  return modelled;
}

void take_sizes(const Scenario& scenario, Modelled& modelled) {
  LayerContext& context = modelled.context;
  context.micro_batch_size = *scenario.batch.micro_batch_size;
  context.tensor = scenario.parallel.tensor;
  context.context = scenario.parallel.context;
  context.vocabulary_devices = vocabulary_devices(scenario);
  modelled.state.data = scenario.parallel.data;
}

Modelled read_modelled(YamlMap& root, const YamlValue& parallel, const YamlValue& batch,
                       const ModelParallel& asked, const Scenario& scenario) {
  Modelled modelled;
  modelled.model = read_model(root.require("model", "a model"), scenario.file);
  modelled.split = asked.split;
  if (modelled.split.where.line == 0) modelled.split.where = parallel.where();
  LayerContext& context = modelled.context;
  if (!scenario.batch.micro_batch_size) batch.fail("a model needs micro_batch_size");
  context.causal = !modelled.model.bidirectional;
  context.seq_length = scenario.batch.seq_length.value_or(modelled.model.max_position_embeddings);
  if (context.seq_length < 1) batch.fail("a model without learned positions needs seq_length");
  // Megatron-LM refuses a sequence longer than its positions: who runs one has given it more.
  if (modelled.model.positions == Positions::kLearned) {
    int& positions = modelled.model.max_position_embeddings;
    positions = std::max(positions, context.seq_length);
  }
  take_sizes(scenario, modelled);
  take_exchange(asked, modelled.model, context);
  context.hierarchy = asked.hierarchy;
  context.repeats_keys = asked.repeats_keys;
  context.expert = asked.expert;
  context.expert_tensor = modelled.model.experts ? asked.expert_tensor.value_or(context.tensor) : 1;
  context.sequence_parallel = asked.sequence_parallel;
  if (const auto memory = root.find("memory")) {
    YamlMap map(*memory);
    (void)map.find("kind");
    read_memory(map, modelled);
    map.finish();
  }
  for (const std::string& fault :
       {fault_of(modelled.model, context), fault_of(modelled.model, context, modelled.state)}) {
    if (!fault.empty()) parallel.fail(fault);
  }
  for (const ScheduleChoice& choice : scenario.schedules) {
    (void)layout_of(modelled, placement_of(choice, scenario.parallel.pipeline), choice.name);
  }
  return modelled;
}

std::optional<RooflineCost> read_roofline(YamlMap& root, Scenario& scenario) {
  static const std::vector<std::string> kCosts{"given", "roofline", "measured"};
  const auto given = root.find("cost");
  if (!given) {
    if (!scenario.modelled || !scenario.hardware) return std::nullopt;
    check_precision(root, scenario);
    return RooflineCost{.overlap = {}, .software = catalogue_software().front().software};
  }
  YamlMap map(*given);
  const auto kind = scenario.modelled && scenario.hardware
                        ? map.find("kind")
                        : map.require("kind", "'given', 'roofline' or 'measured'");
  const std::string chosen = kind ? kind->choice(kCosts) : "roofline";
  // Measured are curves of a GPU, or the passes of a run, which need neither model nor cluster.
  if (chosen == "given" || (chosen == "measured" && map.find("passes"))) return std::nullopt;
  const YamlValue& asked = kind ? *kind : *given;
  if (!scenario.modelled) asked.fail("needs a 'model', and memory that follows from it");
  if (!scenario.hardware) asked.fail("needs a 'cluster' by name, whose GPUs the catalogue knows");
  check_precision(root, scenario);
  RooflineCost cost;
  set_flag(map, "tp_comm_overlap", cost.overlap.tensor);
  set_flag(map, "overlap_grad_reduce", cost.overlap.gradient_reduce);
  set_flag(map, "overlap_param_gather", cost.overlap.parameter_gather);
  read_framework(root, map, *scenario.hardware, *scenario.modelled, cost);
  if (chosen == "measured") read_measured_curves(map, scenario, cost);
  // `none` stands beside a file in a sweep.
  const auto anchor = map.find("anchor");
  if (anchor && !(anchor->is_scalar() && anchor->node().Scalar() == "none")) {
    cost.anchor = read_anchor_file(*anchor, scenario);
  }
  map.finish();
  return cost;
}

}  // namespace pipesim
