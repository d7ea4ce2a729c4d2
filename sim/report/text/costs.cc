#include "sim/report/text/costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <string_view>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/traced.h"
#include "models/vocabulary_share.h"
#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/layer_parts.h"
#include "sim/report/text/sharding.h"

namespace pipesim {
namespace {

using Curves = std::set<std::string, std::less<>>;

constexpr const char* kOfPeak =
    "of peak: FLOPs of the precision's peak, launch included; bytes of the memory bandwidth\n";

std::string human_flops(Flops flops) {
  return flops > Flops(0) ? fmt::format("{:.2f} GFLOP", flops.value() * 1e-9) : "";
}
std::string human_or_nothing(Bytes bytes) { return bytes > Bytes(0) ? human(bytes) : ""; }
std::string millions(double parameters) { return fmt::format("{:.2f} M", parameters * 1e-6); }

std::string traced_text(const Transformer& model) {
  const Traced& traced = *model.traced;
  std::string names;
  for (const TracedBlock& block : traced.blocks) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", block.name);
  }
  return fmt::format("  {} layers of {} kind{} ({}), hidden {}, vocabulary {}{}\n",
                     model.num_layers, traced.blocks.size(), traced.blocks.size() > 1 ? "s" : "",
                     names, model.hidden_size, model.vocab_size,
                     model.tied_embeddings ? ", tied" : "");
}

std::string residual_text(const Transformer& model) {
  std::string text;
  if (const auto& cross = model.cross) {
    text += fmt::format(
        "  the first {} layers encode, the others decode{}\n", cross->encoder_layers,
        cross->decoder_seq_length > 0 ? fmt::format(" {} tokens", cross->decoder_seq_length) : "");
  }
  if (const auto& compressed = model.compressed) {
    text += fmt::format(
        "  compressed attention: {} tokens become one in layers Y, {} in X; queries of rank {}, "
        "outputs of rank {} in {} groups\n",
        compressed->ratio, compressed->indexed_ratio, compressed->q_rank, compressed->output_rank,
        compressed->output_groups);
  }
  if (model.residual_streams > 1) {
    text += fmt::format("  {} residual streams\n", model.residual_streams);
  }
  if (model.residual_block > 0) {
    text += fmt::format("  sums of {} layers each are weighed\n", model.residual_block);
  }
  return text;
}

std::string heads_text(const Transformer& model) {
  if (model.latent) return "latent attention";
  std::string text =
      fmt::format("{} query groups, head size {}", model.num_query_groups, qk_head_size(model));
  if (model.q_rank > 0) text += fmt::format(", queries of rank {}", model.q_rank);
  return text;
}

std::string shape_text(const Transformer& model) {
  if (model.traced) return traced_text(model);
  std::string text = fmt::format(
      "  {} layers, hidden {}, {} heads, {}, MLP {}{}, vocabulary {}{}{}\n", model.num_layers,
      model.hidden_size, model.num_attention_heads, heads_text(model), model.ffn_hidden_size,
      model.gated_mlp ? " gated" : "", model.vocab_size, model.tied_embeddings ? ", tied" : "",
      model.positions == Positions::kLearned
          ? fmt::format(", {} learned positions", model.max_position_embeddings)
          : "");
  if (const auto& latent = model.latent) {
    text += fmt::format(
        "  latent attention: queries {}, keys and values of rank {}, head size {} without position "
        "and {} with, {} of values\n",
        latent->q_rank > 0 ? fmt::format("of rank {}", latent->q_rank) : "not compressed",
        latent->kv_rank, latent->nope_head_size, latent->rope_head_size, latent->v_head_size);
  }
  if (!model.layer_pattern.empty()) {
    text += fmt::format(
        "  layers {}{}\n", model.layer_pattern,
        model.attention_window > 0
            ? fmt::format(", {} of {} tokens", model.chunked_window ? "chunks" : "windows",
                          model.attention_window)
            : "");
  }
  if (const auto& linear = model.linear) {
    text += fmt::format(
        "  linear attention: {} heads of {}, {} of queries and keys of {}, chunks of {} tokens\n",
        linear->num_heads, linear->head_size, linear->key_heads, linear->key_head_size,
        linear->chunk_size);
  }
  text += residual_text(model);
  if (const auto& encoder = model.encoder) {
    text += fmt::format("  encoder: {} layers, hidden {}, {} tokens of an image become {:g}\n",
                        encoder->num_layers, encoder->hidden_size, encoder->patches,
                        1.0 * encoder->patches / encoder->merged);
  }
  if (const auto& experts = model.experts) {
    text += fmt::format(
        "  {} MoE layers after {} dense: {} experts of {}, {} a token{}; MTP modules {}\n",
        moe_layers(model), experts->first_dense_layers, experts->num_experts,
        experts->ffn_hidden_size, experts->experts_per_token,
        experts->shared_experts > 0 ? fmt::format(" and {} shared", experts->shared_experts) : "",
        model.mtp_layers);
  }
  return text;
}

// Settings other than the default.
std::string exchange_text(const LayerContext& context) {
  if (context.context == 1) return "";
  const auto name = [&context](ContextExchange exchange) {
    const bool both = exchange == ContextExchange::kHeadsAndRing;
    return fmt::format(
        "{}{}", to_text(exchange),
        both ? fmt::format(" {} x {}", context.hierarchy[0], context.hierarchy[1]) : "");
  };
  if (context.window_exchange) {
    return fmt::format(" by {}, of windows {}", name(context.exchange),
                       name(*context.window_exchange));
  }
  return context.exchange == ContextExchange::kAllGather ? "" : " by " + name(context.exchange);
}

std::string model_text(const Modelled& modelled, const Layout& layout,
                       const LayerContext& context) {
  const Transformer& model = modelled.model;
  std::string text = fmt::format(
      "model {}, {:.3f} B parameters{} (source: {})\n{}", model.name,
      total_parameters(model) * 1e-9,
      model.experts ? fmt::format(", {:.3f} B activated", total_activated_parameters(model) * 1e-9)
                    : "",
      model.source, shape_text(model));
  text += fmt::format(
      "  microbatch of {} x {} tokens; tensor {}{}, context {}{}, expert {} x {}, data {}\n  "
      "layout "
      "{}\n\n",
      context.micro_batch_size, context.seq_length, context.tensor,
      context.sequence_parallel ? " with sequence parallelism" : "", context.context,
      exchange_text(context), context.expert, context.expert_tensor, modelled.state.data,
      to_megatron_layout(layout));
  const WeightDivision division{context.tensor, context.expert, context.expert_tensor};
  std::vector<Row> rows{{"layer", "number", "parameters", "on a GPU", "weights", "activation",
                         "from B to W", "checkpoint"}};
  const KindCounts counts = count_all(model);
  for (const LayerKind kind : kLayerKinds) {
    const int number = counts[kind];
    if (number == 0) continue;
    const LayerParameters held = layer_parameters(model, kind, division);
    const LayerMemory memory = layer_memory(model, kind, context);
    rows.push_back({name_of(kind), fmt::format("{}", number), millions(parameters(model, kind)),
                    millions(held.dense + held.expert), human(memory.weights),
                    human(memory.activation), human(memory.weight_stash),
                    human(memory.checkpoint)});
  }
  return text + aligned(rows) + "source: docs/reference/model.md, \"Transformers\"\n\n";
}

// "all_reduce, network" are two.
void note(std::string_view names, Curves& curves) {
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(", ", begin), names.size());
    curves.emplace(names.substr(begin, end - begin));
    begin = end + 2;
  }
}

void add_pass(std::vector<Row>& rows, const std::string& title, const PassCost& cost,
              const std::vector<CostPart>& parts, Curves& curves,
              const char* hidden = "  hidden behind matmuls") {
  rows.push_back({title, "", "", "", "", human(cost.total()), ""});
  for (const CostPart& part : parts) {
    rows.push_back({"  " + part.name, part.shape, human_flops(part.flops),
                    human_or_nothing(part.bytes),
                    part.share > 0 ? fmt::format("{:.1f}%", 100 * part.share) : "",
                    human(part.seconds), part.curve});
    note(part.curve, curves);
  }
  if (cost.hidden > Seconds(0)) {
    rows.push_back({hidden, "", "", "", "", human(-cost.hidden), ""});
  }
  if (cost.host > cost.on_gpu()) {
    rows.push_back({"  until the host has launched all of it", "", "", "", "",
                    human(cost.host - cost.on_gpu()), "software"});
    note("software", curves);
  }
}

// A pass takes the sum of its rows.
std::string layers_text(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, Curves& curves) {
  std::vector<Row> rows{{"pass", "shape", "work", "bytes", "of peak", "seconds", "by"}};
  const KindCounts counts = count_all(model);
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    const LayerCost cost = layer_cost(model, kind, setting, hardware);
    const auto add = [&](PassKind pass, const char* letter, const PassCost& of) {
      const auto parts = parts_of(model, kind, pass, setting, hardware);
      if (parts.empty()) return;
      const bool ring = ring_ranks(context_of(kind, model, setting.context)) > 1;
      add_pass(rows, fmt::format("{} {}", name_of(kind), letter), of, parts, curves,
               ring ? "  hidden behind matmuls and attention" : "  hidden behind matmuls");
    };
    add(PassKind::kF, "F", cost.forward);
    add(PassKind::kB, "B", cost.backward_input);
    add(PassKind::kW, "W", cost.backward_weight);
  }
  return aligned(rows, 2) + kOfPeak +
         "source: docs/reference/model.md, \"Matmuls\" to \"Bytes moved\" for work, \"Hardware\" "
         "for times, \"Seconds\" for what is hidden\n\n";
}

// Passes of a device's share, and the collectives that join them.
std::string vocabulary_text(const Transformer& model, VocabularyPlacement placement,
                            const CostSetting& setting, const Hardware& hardware, Curves& curves) {
  std::vector<Row> rows{{"pass", "shape", "work", "bytes", "of peak", "seconds", "by"}};
  for (const PassKind pass : {PassKind::kS, PassKind::kT, PassKind::kIF, PassKind::kIB}) {
    const Work work = share_work(model, pass, placement, setting.context);
    PassCost cost = work_cost(work, setting, hardware);
    std::vector<CostPart> parts = parts_of(work, setting, hardware);
    if (const Seconds tokens = token_seconds(pass, setting); tokens > Seconds(0)) {
      cost.launches += tokens;
      parts.push_back({.name = "tokens sorted and masked",
                       .shape = fmt::format("{:.0f} tokens", layer_tokens(setting.context)),
                       .flops = {},
                       .bytes = {},
                       .share = 0,
                       .seconds = tokens,
                       .curve = "software"});
    }
    add_pass(rows, fmt::format("share {}", to_text(pass)), cost, parts, curves);
  }
  const GroupShape group = pipeline_group(setting, hardware.interconnect.gpus_per_node);
  for (size_t b = 0; b < kBarriers; ++b) {
    const auto barrier = static_cast<Barrier>(b);
    const bool early = placement == VocabularyPlacement::kVocab2;
    if (early && barrier == Barrier::kOutputGradient) continue;  // S has made it
    Seconds sum;
    std::vector<CostPart> parts;
    for (const Collective& each : barrier_collectives(model, placement, setting.context, barrier)) {
      parts.push_back(part_of(each, "devices", group, hardware.interconnect));
      sum += parts.back().seconds;
    }
    if (parts.empty()) continue;
    rows.push_back(
        {fmt::format("collective {}", to_text(barrier)), "", "", "", "", human(sum), ""});
    for (const CostPart& part : parts) {
      rows.push_back({"  " + part.name, part.shape, "", human(part.bytes), "", human(part.seconds),
                      part.curve});
      note(part.curve, curves);
    }
  }
  return fmt::format("vocabulary {}: every device, a microbatch\n", to_text(placement)) +
         aligned(rows, 2) +
         (placement == VocabularyPlacement::kInterlaced
              ? ""
              : fmt::format("beside its collectives passes of layers keep {:.1f}% of their rate\n",
                            100 * setting.software.beside_vocabulary)) +
         fmt::format(
             "from S to T a device keeps {}\nsource: docs/reference/vocabulary-parallelism.md\n\n",
             human(share_activation(model, setting.context)));
}

// Copies to the host and back.
std::string copies_text(const Scenario& scenario, const Problem& problem, const Program& program) {
  if (program.copies() == nullptr) return "";
  std::vector<Row> rows{{"stage", "device", "copied", "copy out", "copy in", "out alone"}};
  const Placement& place = problem.placement;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageCost& stage = problem.stage(vs);
    const Copy copy{static_cast<std::uint32_t>(place.device(vs)), 0,
                    static_cast<std::uint16_t>(place.chunk(vs))};
    rows.push_back({fmt::format("{}", vs), fmt::format("{}", place.device(vs)),
                    human(copied_bytes(problem, program, copy)), human(stage.copy_out),
                    human(stage.copy_in), human(problem.copy_alone_factor * stage.copy_out)});
  }
  std::string text = "copies to the host, a microbatch\n" + aligned(rows);
  if (!scenario.hardware || !scenario.cost.copy_out.empty()) {
    return text + fmt::format("source of seconds: given by {}\n\n", scenario.file);
  }
  if (const double share = scenario.hardware->cluster.copy_share.value_or(0); share > 0) {
    text += fmt::format(
        "beside a copy compute loses {:g}: F takes so much of the copy out longer, B of the copy "
        "in\n",
        share);
  }
  return text + fmt::format(
                    "a copy takes {} (the ranks of a stage on one switch) x its bytes / "
                    "host.duplex; alone on its way x host.duplex / host.alone\n"
                    "source: docs/reference/model.md, \"Offload\"\n\n",
                    ranks_on_a_switch(scenario));
}

std::string layers_of(const StageLayers& stage) {
  std::string text;
  const auto add = [&text](int number, const char* letter) {
    if (number == 0) return;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ",
                        number > 1 ? fmt::format("{} ", number) : "", letter);
  };
  add(stage.embedding ? 1 : 0, "E");
  add(stage.layers, "t");
  add(stage.mtp, "m");
  add(stage.output ? 1 : 0, "L");
  return text.empty() ? "none" : text;
}

std::string stages_text(const Scenario& scenario, const Problem& problem, const Layout* layout) {
  std::vector<Row> rows{{"stage", "device", "layers", "F", "B", "W", "R", "FB", "message",
                         "activation", "from B to W", "checkpoint"}};
  const Placement& place = problem.placement;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageCost& stage = problem.stage(vs);
    const int number = place.model_stage(vs);
    rows.push_back({fmt::format("{}", vs), fmt::format("{}", place.device(vs)),
                    layout != nullptr ? layers_of(layout->stages[number]) : "-",
                    human(stage.forward), human(stage.backward_input), human(stage.backward_weight),
                    human(stage.recompute.value_or(stage.forward)),
                    stage.overlapped ? human(*stage.overlapped) : "-", human(stage.transfer),
                    human(stage.activation), human(stage.weight_stash), human(stage.checkpoint)});
  }
  std::string text = aligned(rows);
  if (!scenario.roofline) {
    const auto& passes = scenario.cost.passes;
    text += fmt::format("source of seconds: {} {}\n", passes ? "measured," : "given by",
                        passes ? passes->file : scenario.file);
  }
  if (scenario.memory) text += fmt::format("source of bytes: given by {}\n", scenario.file);
  return text + '\n';
}

std::string message_text(const Modelled& modelled, const CostSetting& setting) {
  return fmt::format(
      "message between stages: {} from each GPU (source: docs/reference/model.md, "
      "\"Messages\")\n\n",
      human(message_bytes(modelled.model, setting.context, {0, modelled.model.num_layers})));
}

std::string step_text(const Case& made, Curves& curves) {
  const Scenario& scenario = *made.scenario;
  const bool hosted = made.setting->state.optimizer.host_fraction > 0;
  // Most steps take nothing beside what is modelled.
  const bool fixed = made.closing.front()[ClosingTerm::kFixed] > Seconds(0);
  const auto shown = [fixed](ClosingTerm term) { return term != ClosingTerm::kFixed || fixed; };
  std::vector<Row> rows{{"device", "parameters", "of experts"}};
  Row& header = rows.front();
  for (size_t i = 0; i < kClosingTermNames.size(); ++i) {
    const auto term = static_cast<ClosingTerm>(i);
    if (!shown(term)) continue;
    header.emplace_back(kClosingTermNames[i]);
    if (term == ClosingTerm::kOptimizer && hosted) header.emplace_back("of it on the host");
  }
  header.insert(header.end(), {"hidden", "step"});
  const bool norm = joins_devices(made.sync);
  for (int device = 0; device < made.placement.devices(); ++device) {
    const HeldParameters held = held_parameters(scenario.modelled->model, *made.context,
                                                *made.layout, made.placement, device);
    const StepCost& step = made.closing[device];
    Row row{fmt::format("{}", device), millions(held.dense + held.expert), millions(held.expert)};
    for (size_t i = 0; i < kClosingTermNames.size(); ++i) {
      const auto term = static_cast<ClosingTerm>(i);
      if (!shown(term)) continue;
      row.push_back(term == ClosingTerm::kNorm && !norm ? "-" : human(step[term]));
      if (term == ClosingTerm::kOptimizer && hosted) row.push_back(human(step.host));
    }
    row.insert(row.end(), {human(-step.hidden), human(step.total())});
    rows.push_back(std::move(row));
  }
  // Curves of gradients, parameters, the norm, a tied embedding and messages.
  curves.insert({"all_reduce", "all_reduce_in_switch", "streaming", "all_to_all"});
  if (made.setting->state.distributed_optimizer) curves.insert({"reduce_scatter", "all_gather"});
  return "what closes an iteration\n" + aligned(rows) +
         "source: docs/reference/model.md, \"Step\"\n\n";
}

std::string memory_text(const Case& made, const Program& program) {
  const MemoryEstimate& memory = *made.memory;
  const Evaluation result = evaluate(program, made.problem);
  std::vector<Row> rows{{"device", "weights", "gradients", "optimizer", "vocabulary", "buffers",
                         "overhead", "peak activation", "in flight", "peak memory"}};
  for (size_t device = 0; device < memory.devices.size(); ++device) {
    const DeviceMemory& held = memory.devices[device];
    const DeviceEvaluation& ran = result.devices[device];
    rows.push_back({fmt::format("{}", device), human(held.weights), human(held.gradients),
                    human(held.optimizer), human(held.vocabulary), human(held.buffers),
                    human(held.overhead), human(ran.peak_activation),
                    fmt::format("{}", ran.peak_in_flight),
                    human(held.total() + ran.peak_activation)});
  }
  return "memory of a GPU\n" + aligned(rows) +
         "source: docs/reference/model.md, \"Memory of a GPU\"; overhead: assumed there\n\n";
}

// Bytes of a parameter whose state the GPU holds.
std::string step_bytes_text(ParameterState state) {
  const auto moved = [&state](bool in_fp32) {
    state.gradients_in_fp32 = in_fp32;
    const StepBytes bytes = step_bytes(state);
    return bytes.update + bytes.gradients;
  };
  const double more = moved(false) - moved(true);
  return fmt::format("{:g} bytes a parameter, {:g} {} for 16-bit gradients", moved(true),
                     std::abs(more), more < 0 ? "fewer" : "more");
}

std::string gigabytes(BytesPerSecond rate) {
  return fmt::format("{:.4g} GB/s", rate.value() * 1e-9);
}

std::string host_text(const Hardware& hardware, const OptimizerState& optimizer) {
  if (optimizer.swapped) {
    return fmt::format("    states on the host: a GPU copies {} each way, both at once\n",
                       gigabytes(each_way(hardware.host)));
  }
  return fmt::format(
      "    states on the host: a node's CPUs move {} while they update, a GPU copies {} one way\n"
      "      update: assumed of every host, ZeRO-Offload (arXiv 2101.06840, table 4), or stated\n",
      gigabytes(hardware.host.update), gigabytes(one_way(hardware.host)));
}

std::string hardware_text(const Scenario& scenario, const ParameterState& state,
                          const Curves& curves) {
  static const std::string kBeside = "compute_beside_";
  constexpr std::string_view kBetweenNodes = "_between_nodes";
  const Hardware& hardware = *scenario.hardware;
  std::string text =
      fmt::format("numbers of cluster {} and GPU {}\n", hardware.name, hardware.gpu.name);
  std::vector<Sourced> used;
  for (const Sourced& number : *scenario.sources) {
    const std::string group = number.key.substr(0, number.key.find('.'));
    static const std::array<std::string, 8> kAlways{
        "peak", "chip", "node", "link", "network", "send_recv", "host_operation", "jitter"};
    // The launch of every kernel stands with the matmuls.
    if (group == "matmul" || curves.contains(group) || group.ends_with(kBetweenNodes) ||
        std::ranges::find(kAlways, group) != kAlways.end() || group.starts_with(kBeside)) {
      used.push_back(number);
    }
  }
  const bool measured =
      std::ranges::find(used, kBeside + "collectives.share", &Sourced::key) != used.end();
  text += sourced_list(used);
  return text +
         fmt::format(
             "  further constants\n    hidden collectives take {:.4g} of the multiprocessors\n"
             "      {}\n"
             "    an optimizer step moves {}\n"
             "      counted: docs/reference/model.md, \"Step\"\n"
             "    one of its kernels takes {:.0f} parameters, in 4 passes\n"
             "      published: NVIDIA Apex, multi_tensor_apply (320 blocks of 65536)\n{}",
             hardware.interconnect.exchange_share,
             measured ? "measured: above"
                      : "published: DeepSeek-V3, arXiv 2412.19437, section 3.2.2 (20 of 132)",
             step_bytes_text(state), kLaunchElements,
             state.optimizer.host_fraction > 0 ? host_text(hardware, state.optimizer) : "");
}

}  // namespace

std::string sourced_list(std::span<const Sourced> numbers) {
  std::string text;
  std::string source;
  for (const Sourced& number : numbers) {
    // The numbers of a group stand together and share their source.
    if (!source.empty() && number.source != source) text += fmt::format("      {}\n", source);
    source = number.source;
    text += fmt::format("    {}: {}\n", number.key, number.value);
  }
  return text + (numbers.empty() ? "" : fmt::format("      {}\n", source));
}

std::string cost_breakdown(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const auto program = make_program(made);
  const std::string copies = copies_text(scenario, made.problem, *program);
  const Layout* layout = made.layout ? &*made.layout : nullptr;
  const std::string stages = stages_text(scenario, made.problem, layout);
  if (!scenario.modelled) return stages + copies;
  const Transformer& model = scenario.modelled->model;
  std::string text = model_text(*scenario.modelled, *layout, *made.context);
  Curves curves;
  if (made.setting) {
    const Hardware& hardware = *scenario.hardware;
    text += layers_text(model, *made.setting, hardware, curves);
    if (is_sharded(scenario.vocabulary)) {
      text += vocabulary_text(model, scenario.vocabulary, *made.setting, hardware, curves);
    }
  }
  text += stages;
  if (made.setting) {
    text += message_text(*scenario.modelled, *made.setting) + sharding_text(made) +
            step_text(made, curves);
  }
  text += copies;
  if (!copies.empty() && scenario.hardware && scenario.cost.copy_out.empty()) curves.insert("host");
  text += memory_text(made, *program);
  return made.setting ? text + hardware_text(scenario, made.setting->state, curves) : text;
}

}  // namespace pipesim
