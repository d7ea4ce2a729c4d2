#include "sim/report/json/document.h"

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "models/layer_parameters.h"
#include "sim/planning/description.h"
#include "sim/report/json/band.h"
#include "sim/report/json/choice.h"
#include "sim/report/json/memory_options.h"
#include "sim/report/json/schema.h"
#include "sim/report/metrics/json.h"
#include "sim/report/metrics/row.h"
#include "sim/scenario/curve_origins.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json values_of(const std::vector<T>& values) {
  if (values.size() == 1) return values.front().value();
  Json list = Json::array();
  for (const T& value : values) list.push_back(value.value());
  return list;
}

const char* basis_name(CostBasis per) { return per == CostBasis::kDevice ? "device" : "stage"; }

Json offload_json(const Offload& offload) {
  Json json{{"chunks", offload.chunks ? Json(*offload.chunks) : Json(nullptr)}};
  if (!offload.which.empty()) json["chunks"] = offload.which;
  if (offload.automatic) json["automatic"] = true;
  const OffloadedMicrobatches& some = offload.microbatches;
  if (!some.listed.empty()) {
    json["microbatches"] = some.listed;
  } else if (!some.all()) {
    json["microbatches"] = {{"from", some.from},
                            {"to", some.to ? Json(*some.to) : Json(nullptr)},
                            {"every", some.every},
                            {"count", some.count ? Json(*some.count) : Json(nullptr)}};
  }
  json["ratio"] = offload.ratio;
  json["bandwidth"] = offload.bandwidth == CopyBandwidth::kAlone ? "alone" : "duplex";
  json["devices_per_link"] =
      offload.devices_per_link ? Json(*offload.devices_per_link) : Json(nullptr);
  json["prefetch"] = offload.prefetch;
  return json;
}

// Which layers of a stage, where these are not all.
void add_recomputed_layers(const ScheduleChoice& choice, Json& json) {
  if (!choice.recompute) return;
  const RecomputedLayers& layers = choice.recompute->layers;
  if (layers.first > 0) json["layers_of_stage"] = layers.first;
  if (layers.every > 1) json["every"] = layers.every;
  if (layers.group > 1) json["layers_together"] = layers.group;
  if (layers.others.of_modules()) json["others"] = to_text(layers.others);
  if (layers.encoder) json["encoder"] = *layers.encoder ? "full" : "none";
}

Json full_recompute_json(const ScheduleChoice& choice, int chunks) {
  const RecomputedLayers layers = choice.recompute ? choice.recompute->layers : RecomputedLayers{};
  Json json{{"granularity", layers.decoder ? "full" : "none"}, {"chunks", chunks}};
  add_recomputed_layers(choice, json);
  return json;
}

Json schedule_json(const Case& made) {
  const ScheduleChoice& choice = made.choice;
  Json json{{choice.program ? "csv" : "name", choice.name}};
  if (choice.described) json["file"] = choice.described->schedule.file;
  if (const int chunks = made.problem.recompute_chunks; chunks > 0) {
    json["recompute"] = full_recompute_json(choice, chunks);
  }
  const RecomputeGranularity granularity = granularity_of(choice);
  if (granularity.of_modules()) {
    json["recompute"] = {{"granularity", to_text(granularity)}};
    add_recomputed_layers(choice, json["recompute"]);
  }
  if (choice.offload) json["offload"] = offload_json(*choice.offload);
  if (made.sync == OptimizerSync::kAsynchronous) json["optimizer_sync"] = "asynchronous";
  if (choice.program) return json;
  json["virtual_pipeline_model_parallel_size"] = made.placement.chunks();
  if (const auto* factor = std::get_if<double>(&choice.memory_limit))
    json["memory_limit"] = *factor;
  if (const auto* bytes = std::get_if<Bytes>(&choice.memory_limit)) {
    json["memory_limit_bytes"] = bytes->value();
  }
  if (const auto* total = std::get_if<TotalLimit>(&choice.memory_limit)) {
    json["memory_limit_total_bytes"] = total->bytes.value();
  }
  for (const auto& [name, value] : choice.options) {
    std::visit([&json, &name = name](const auto& plain) { json[name] = plain; }, value);
  }
  return json;
}

Json layer_json(const GivenLayers& layers) {
  const ForwardParts& f = layers.forward;
  const BackwardParts& b = layers.backward;
  return {{"count", layers.count.size() == 1 ? Json(layers.count.front()) : Json(layers.count)},
          {"forward_seconds",
           {{"attention", f.attention.value()},
            {"dispatch", f.dispatch.value()},
            {"experts", f.experts.value()},
            {"combine", f.combine.value()}}},
          {"backward_input_seconds",
           {{"attention", b.attention.value()},
            {"dispatch", b.dispatch.value()},
            {"experts", b.experts.value()},
            {"combine", b.combine.value()}}},
          {"backward_weight_seconds",
           {{"attention", b.attention_weight.value()}, {"experts", b.experts_weight.value()}}},
          {"exchange_share", layers.exchange_share}};
}

// Seconds of slices that do not go by their length.
void add_slice_costs(const GivenCost& cost, Json& json) {
  const SliceShare& attention = cost.attention;
  if (attention.forward > 0 || attention.backward_input > 0) {
    json["attention_share"] = {{"forward", attention.forward},
                               {"backward_input", attention.backward_input}};
  }
  const auto add = [&json](const char* key, const std::vector<Seconds>& seconds) {
    if (!seconds.empty()) json["fixed_seconds"][key] = values_of(seconds);
  };
  add("forward", cost.fixed.forward);
  add("backward_input", cost.fixed.backward_input);
  add("backward_weight", cost.fixed.backward_weight);
}

Json barriers_json(const BarrierSeconds& barriers) {
  Json json;
  for (size_t each = 0; each < kVocabularyCollectives.size(); ++each) {
    json[std::string(kVocabularyCollectives[each])] = barriers[static_cast<Barrier>(each)].value();
  }
  return json;
}

Json cost_json(const GivenCost& cost) {
  if (cost.passes) {
    return {{"kind", "measured"},
            {"passes", cost.passes->file},
            {"stages", cost.passes->stages.size()},
            {"collective_seconds", cost.collective.value()},
            {"optimizer_seconds", cost.optimizer.value()}};
  }
  Json json{{"kind", "given"},
            {"per", basis_name(cost.per)},
            {"forward_seconds", values_of(cost.forward)},
            {"backward_input_seconds", values_of(cost.backward_input)},
            {"backward_weight_seconds", values_of(cost.backward_weight)}};
  if (!cost.overlapped.empty()) json["overlapped_seconds"] = values_of(cost.overlapped);
  if (cost.layers) json["layer"] = layer_json(*cost.layers);
  if (!cost.recompute.empty()) json["recompute_seconds"] = values_of(cost.recompute);
  add_slice_costs(cost, json);
  if (!cost.output_forward.empty()) {
    json["output_forward_seconds"] = values_of(cost.output_forward);
    json["output_backward_seconds"] = values_of(cost.output_backward);
    json["input_forward_seconds"] = values_of(cost.input_forward);
    json["input_backward_seconds"] = values_of(cost.input_backward);
  }
  if (!cost.copy_out.empty()) {
    json["copy_out_seconds"] = values_of(cost.copy_out);
    json["copy_in_seconds"] = values_of(cost.copy_in);
    json["copy_solo_factor"] = cost.copy_solo_factor;
  }
  if (cost.message) {
    json["message_bytes"] = cost.message->value();
  } else {
    json["transfer_seconds"] = cost.transfer.value();
  }
  json["collective_seconds"] = cost.collective.value();
  if (cost.barriers) json["vocabulary_collective_seconds"] = barriers_json(*cost.barriers);
  json["optimizer_seconds"] = cost.optimizer.value();
  return json;
}

const char* kind_of_cost(const Scenario& scenario) {
  if (!scenario.roofline) return "given";
  return scenario.roofline->calibration ? "measured" : "roofline";
}

Json roofline_json(const Scenario& scenario) {
  const Overlap& overlap = scenario.roofline->overlap;
  const auto& calibration = scenario.roofline->calibration;
  Json json{{"kind", kind_of_cost(scenario)}, {"gpu", scenario.hardware->gpu.name}};
  if (calibration) {
    const CurveOrigins origins = curve_origins(*scenario.sources);
    json["file"] = calibration->file;
    json["curves"] = {{"measured", origins.measured},
                      {"fitted", origins.fitted},
                      {"catalogue", origins.catalogue}};
  }
  json["tp_comm_overlap"] = overlap.tensor;
  json["overlap_grad_reduce"] = overlap.gradient_reduce;
  json["overlap_param_gather"] = overlap.parameter_gather;
  if (const auto& anchor = scenario.roofline->anchor) {
    json["anchor"] = {{"file", anchor->file},
                      {"compute", anchor->factors.compute},
                      {"reduction", anchor->factors.reduction},
                      {"fixed_seconds", anchor->factors.fixed.value()}};
  }
  return json;
}

void add_modelled(Json& json, const Modelled& modelled) {
  const LayerContext& context = modelled.context;
  const Transformer& model = modelled.model;
  json["model"] = {{"name", model.name},
                   {"num_layers", model.num_layers},
                   {"hidden_size", model.hidden_size},
                   {"vocab_size", model.vocab_size},
                   {"parameters", total_parameters(model)},
                   {"activated_parameters", total_activated_parameters(model)}};
  json["parallel"]["context_parallel_size"] = context.context;
  if (context.window_exchange) {
    for (const ContextExchange exchange : exchanges_of_layers(model, context)) {
      json["parallel"]["cp_comm_type"].push_back(to_text(exchange));
    }
  } else if (context.exchange != ContextExchange::kAllGather) {
    json["parallel"]["cp_comm_type"] = to_text(context.exchange);
  }
  if (uses(context, ContextExchange::kHeadsAndRing)) {
    json["parallel"]["hierarchical_context_parallel_sizes"] = context.hierarchy;
  }
  if (context.repeats_keys) json["parallel"]["kv_head_repeat"] = true;
  json["parallel"]["expert_model_parallel_size"] = context.expert;
  json["parallel"]["expert_tensor_parallel_size"] = context.expert_tensor;
  json["parallel"]["sequence_parallel"] = context.sequence_parallel;
  json["batch"]["seq_length"] = context.seq_length;
  json["memory"] = {
      {"kind", "model"},
      {"precision", modelled.precision},
      {"fp8_param_gather", context.fp8_parameters},
      {"accumulate_allreduce_grads_in_fp32", modelled.state.gradients_in_fp32},
      {"use_distributed_optimizer", modelled.state.distributed_optimizer},
      {"flash_attention", context.flash_attention},
      {"dropout", context.dropout},
      {"capacity_bytes", modelled.capacity ? Json(modelled.capacity->value()) : Json(nullptr)}};
  const ParameterState& state = modelled.state;
  add_optimizer_state(state.optimizer, json["memory"]);
  add_kept_activations(context, json["memory"]);
  if (state.shard_degree > 0) json["memory"]["data_parallel_shard_degree"] = state.shard_degree;
  if (!state.sharded_gradients) return;
  json["memory"]["data_parallel_sharding_strategy"] = to_text(strategy_of(state));
  if (!state.sharded_weights) return;
  json["memory"]["reshard_after_forward"] = state.reshard_after_forward;
  json["memory"]["reduce_every_microbatch"] = state.reduce_every_microbatch;
}

Json cluster_json(const Cluster& cluster) {
  Json json{{"gpus_per_node", cluster.gpus_per_node},
            {"nics_per_node", cluster.nics_per_node},
            {"link_bandwidth_bytes_per_second", cluster.link_bandwidth.value()},
            {"link_latency_seconds", cluster.link_latency.value()},
            {"network_bandwidth_bytes_per_second", cluster.nic_bandwidth.value()},
            {"network_latency_seconds", cluster.nic_latency.value()},
            {"message_share", cluster.message_share.value_or(0)}};
  if (cluster.copy_share) json["copy_share"] = *cluster.copy_share;
  if (cluster.idle_power) json["idle_power_watts"] = cluster.idle_power->value();
  if (cluster.busy_power) json["busy_power_watts"] = cluster.busy_power->value();
  if (cluster.host_memory) json["host_memory_bytes"] = cluster.host_memory->value();
  return json;
}

Json perturb_json(const Perturbation& perturb) {
  Json json{{"seed", perturb.seed},
            {"jitter", perturb.jitter ? Json(*perturb.jitter) : Json(nullptr)},
            {"runs", perturb.runs},
            {"stragglers", Json::array()},
            {"links", Json::array()}};
  for (const SpeedChange& change : perturb.stragglers) {
    json["stragglers"].push_back({{"rank", change.rank},
                                  {"factor", 1 / change.factor},
                                  {"from_seconds", change.at_seconds}});
  }
  for (const DegradedLink& link : perturb.links) {
    json["links"].push_back({{"from", link.from}, {"to", link.to}, {"factor", link.factor}});
  }
  return json;
}

Json memory_json(const GivenMemory& memory) {
  Json json{{"kind", "given"},
            {"per", basis_name(memory.per)},
            {"activation_bytes", values_of(memory.activation)},
            {"weight_stash_bytes", values_of(memory.weight_stash)}};
  if (!memory.checkpoint.empty()) json["checkpoint_bytes"] = values_of(memory.checkpoint);
  if (!memory.output_activation.empty()) {
    json["output_activation_bytes"] = values_of(memory.output_activation);
  }
  return json;
}

// The derived numbers of a GPU that is known from its data sheet. Requires one.
Json data_sheet_json(const Scenario& scenario) {
  const Gpu& gpu = scenario.hardware->gpu;
  Json json{{"name", gpu.name}, {"spread", gpu.spread}, {"numbers", Json::array()}};
  for (const Sourced& number : *scenario.sources) {
    if (!number.source.starts_with("assumed")) continue;
    json["numbers"].push_back({{"key", number.key}, {"value", number.value}, {"assumed", true}});
  }
  return json;
}

Json scenario_json(std::span<const Answer> answers) {
  static constexpr std::array kSyncs{"none", "all_reduce", "post_validation", "asynchronous"};
  const Scenario& scenario = *answers.front().made.scenario;
  Json json;
  json["schedule"] = Json::array();
  for (const Answer& answer : answers) json["schedule"].push_back(schedule_json(answer.made));
  json["parallel"] = {{"pipeline_model_parallel_size", scenario.parallel.pipeline},
                      {"tensor_model_parallel_size", scenario.parallel.tensor},
                      {"data_parallel_size", scenario.parallel.data}};
  json["pipelines"] = scenario.parallel.pipelines;
  json["batch"] = {{"num_microbatches", scenario.batch.microbatches}};
  json["batch"]["micro_batch_size"] =
      scenario.batch.micro_batch_size ? Json(*scenario.batch.micro_batch_size) : Json(nullptr);
  json["cost"] = scenario.roofline ? roofline_json(scenario) : cost_json(scenario.cost);
  if (scenario.memory) json["memory"] = memory_json(*scenario.memory);
  if (scenario.modelled) add_modelled(json, *scenario.modelled);
  if (scenario.cluster) json["cluster"] = cluster_json(*scenario.cluster);
  if (scenario.hardware) json["cluster"]["name"] = scenario.hardware->name;
  if (scenario.hardware && !scenario.hardware->gpu.like.empty()) {
    json["cluster"]["gpu"] = data_sheet_json(scenario);
  }
  json["engine"] = {{"name", scenario.engine == EngineKind::kReplay ? "replay" : "simgrid"}};
  if (scenario.engine == EngineKind::kSimGrid) {
    json["engine"]["gpu"] = scenario.gpu == GpuModel::kHost ? "host" : "timer";
  }
  json["optimizer"] = {{"sync", kSyncs[static_cast<size_t>(scenario.sync)]}};
  json["framework"] = {
      {"transfers", scenario.transfers == Transfers::kBlocking ? "blocking" : "overlapped"}};
  json["vocabulary"] = {{"placement", to_text(scenario.vocabulary)}};
  json["offload"] = scenario.offload ? offload_json(*scenario.offload) : Json(nullptr);
  json["perturb"] = perturb_json(scenario.perturb);
  return json;
}

Json host_json(const HostMemory& host, const std::optional<HostPlan>& plan) {
  const auto bytes = [](const std::optional<Bytes>& of) {
    return of ? Json(of->value()) : Json(nullptr);
  };
  Json json{{"peak_bytes_of_node", bytes(host.node)},
            {"optimizer_bytes_of_node", host.node_optimizer.value()},
            {"capacity_bytes", bytes(host.capacity)},
            {"fits", host.fits()},
            {"nearest", nullptr},
            {"nearest_bytes_of_node", nullptr},
            {"peak_bytes_of_device", Json::array()},
            {"optimizer_bytes_of_device", Json::array()}};
  if (plan) {
    json["nearest"] = schedule_json(plan->made);
    json["nearest_bytes_of_node"] = plan->node.value();
  }
  for (const Bytes& of : host.devices) json["peak_bytes_of_device"].push_back(of.value());
  for (const Bytes& of : host.optimizer) json["optimizer_bytes_of_device"].push_back(of.value());
  return json;
}

Json device_json(const DeviceReport& device, bool has_memory) {
  Json json{{"device", device.device},
            {"busy_seconds", device.busy.value()},
            {"passes_seconds", device.passes.value()},
            {"recompute_seconds", device.recompute.value()},
            {"closing_seconds", device.closing().value()},
            {"span_seconds", device.span.value()},
            {"idle_seconds", device.idle.value()},
            {"peak_activation_bytes", nullptr},
            {"peak_activation_at_seconds", nullptr},
            {"peak_activation_pass", nullptr},
            {"peak_memory_bytes", nullptr},  // needs a model: given memory knows activations only
            {"peak_memory_by_category", Json::object()},
            {"idle_seconds_by_cause", Json::object()},
            {"energy_joules", nullptr}};
  if (has_memory) {
    json["peak_activation_bytes"] = device.peak_activation.value();
    json["peak_activation_at_seconds"] = device.peak_time.value();
    json["peak_activation_pass"] = device.peak_pass;
    json["peak_memory_by_category"]["activations"] = device.peak_activation.value();
  }
  if (device.memory) {
    json["peak_memory_bytes"] = device.peak_memory()->value();
    Json& categories = json["peak_memory_by_category"];
    categories["weights"] = device.memory->weights.value();
    categories["gradients"] = device.memory->gradients.value();
    categories["optimizer"] = device.memory->optimizer.value();
    categories["vocabulary"] = device.memory->vocabulary.value();
    categories["buffers"] = device.memory->buffers.value();
    categories["overhead"] = device.memory->overhead.value();
  }
  for (size_t cause = 0; cause < kIdleCauseNames.size(); ++cause) {
    json["idle_seconds_by_cause"][std::string(kIdleCauseNames[cause])] =
        device.idle_by_cause[cause].value();
  }
  if (device.energy_joules) json["energy_joules"] = *device.energy_joules;
  return json;
}

Json ensemble_json(const Ensemble& ensemble) {
  return {{"runs", ensemble.runs},
          {"seed", ensemble.seed},
          {"jitter", ensemble.jitter},
          {"mean", ensemble.mean.value()},
          {"stddev", ensemble.stddev.value()},
          {"p05", ensemble.p05.value()},
          {"p50", ensemble.p50.value()},
          {"p95", ensemble.p95.value()}};
}

void add_memory(Json& json, const Answer& answer) {
  const Case& made = answer.made;
  if (made.layout) json["pipeline_model_parallel_layout"] = to_megatron_layout(*made.layout);
  if (answer.result.fits) {
    const auto& change = answer.advice.change;
    json["nearest_change"] = change ? Json(change->words) : Json(nullptr);
  }
  if (answer.result.host) {
    json["host_memory"] = host_json(*answer.result.host, answer.advice.offload);
  }
  if (!made.offload_reason.empty()) json["offload_choice"] = made.offload_reason;
}

// In the order in which they are put in; of an ensemble, of its first draw.
Json microbatches_json(const UnequalBatch& unequal, const Case& made) {
  Json json{{"order", kMicrobatchOrderNames[static_cast<size_t>(unequal.order)]}};
  if (unequal.lengths()) json["packing"] = kPackingNames[static_cast<size_t>(unequal.packing)];
  if (!unequal.outliers.empty()) json["outliers"] = unequal.outliers;
  if (!unequal.draw.listed()) json["seed"] = unequal.draw.seed;
  if (unequal.images_draw && !unequal.images_draw->listed()) {
    json["images_seed"] = unequal.images_draw->seed;
  }
  std::vector<int> order = made.microbatch_order;
  if (order.empty()) {
    order.resize(unequal.microbatches());
    std::iota(order.begin(), order.end(), 0);
  }
  for (const int each : order) {
    const auto at = static_cast<size_t>(each);
    json["drawn_as"].push_back(each);
    if (unequal.lengths()) json["lengths"].push_back(unequal.documents[at]);
    if (!unequal.images.empty()) json["images"].push_back(unequal.images[at]);
    if (!unequal.factors.empty()) json["factors"].push_back(unequal.factors[at]);
  }
  return json;
}

Json result_json(const Answer& answer, bool timings) {
  const Case& made = answer.made;
  const Report& report = answer.result.report;
  Json json;
  add_choice(json, columns_of(made.choice));
  json["label"] = made.label;
  json["transfers"] = made.blocking ? "blocking" : "overlapped";
  const MetricRow metrics = metrics_of(*made.scenario, answer.result);
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Metric& metric = run_metrics()[i];
    json[std::string(metric.name)] = metric_json(metric, metrics[i]);
  }
  add_memory(json, answer);
  json["devices"] = Json::array();
  for (const DeviceReport& device : report.devices) {
    json["devices"].push_back(device_json(device, knows_memory(*made.scenario)));
  }
  if (!made.choice.slices.empty()) json["slices"] = made.choice.slices;
  if (made.scenario->batch.unequal) {
    json["microbatches"] = microbatches_json(*made.scenario->batch.unequal, made);
  }
  json["ensemble"] = report.ensemble ? ensemble_json(*report.ensemble) : Json(nullptr);
  json["band"] = band_json(made.scenario->band, report.iteration);
  json["tasks"] = report.tasks;
  if (timings) {
    const StepSeconds& seconds = answer.result.seconds;
    json["seconds"] = {{"plan", seconds.plan},
                       {"build", seconds.build},
                       {"run", seconds.run},
                       {"metrics", seconds.metrics}};
  }
  return json;
}

}  // namespace

Json run_document(std::span<const Answer> answers, const JsonOptions& options) {
  const Scenario& scenario = *answers.front().made.scenario;
  Json document;
  document["schema"] = kJsonSchema;
  document["pipesim"] = {{"version", options.version},
                         {"engine", scenario.engine == EngineKind::kReplay ? "replay" : "simgrid"},
                         {"cost", kind_of_cost(scenario)}};
  document["scenario"] = scenario_json(answers);
  document["results"] = Json::array();
  for (const Answer& answer : answers) {
    document["results"].push_back(result_json(answer, options.timings));
  }
  for (const RefusedSchedule& each : options.refused) {
    document["refused"].push_back(
        {{"schedule", each.schedule}, {"label", each.label}, {"reason", each.reason}});
  }
  return document;
}

}  // namespace pipesim
