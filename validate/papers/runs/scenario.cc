// A row of measured runs as a scenario's YAML.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "sim/core/error.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/runs/rules.h"
#include "validate/papers/runs/shape.h"

namespace pipesim::runs {
namespace {

std::string small(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

bool has(const std::string& text, const std::string& word) {
  return small(text).find(small(word)) != std::string::npos;
}

std::string cluster_of(const std::string& gpu, const Rules& rules) {
  for (const HardwareName& name : rules.hardware) {
    const auto in_it = [&gpu](const std::string& word) { return has(gpu, word); };
    if (std::ranges::all_of(name.words, in_it)) return name.cluster;
  }
  return "";
}

// bf16, fp8, mxfp8 or nvfp4; other words as they are.
std::string precision_of(const Row& row, const Settings& settings) {
  std::string written = small(row.text("precision"));
  if (written.empty()) return settings.precision;
  for (const char* known : {"nvfp4", "mxfp8", "fp8", "bf16", "fp16"}) {
    if (written.find(known) != std::string::npos) return known;
  }
  return written;
}

// Modules by the words that rows have for them, the longer ones first: a word is used up.
struct ModuleWord {
  const char* word;
  const char* module;
};
constexpr std::array<ModuleWord, 12> kModuleWords{{{"mla_up_proj", "mla_up_proj"},
                                                   {"shared_experts", "shared_experts"},
                                                   {"moe_act", "moe_act"},
                                                   {"mlp activation", "mlp_act"},
                                                   {"mlp_act", "mlp_act"},
                                                   {"core_attn", "core_attn"},
                                                   {"selective", "core_attn"},
                                                   {"layernorm", "layernorm"},
                                                   {"norm", "layernorm"},
                                                   {"moe", "moe"},
                                                   {"mlp", "mlp"},
                                                   {"act", "moe_act"}}};

// The layers or operations between others that torchtitan computes again: "every other layer",
// "every 3rd layer"; "per op" keeps what matmuls and attention give. Empty where a row says nothing
// of it.
std::string recompute_between(const std::string& stated) {
  constexpr std::string_view kEvery = "every ";
  const size_t at = stated.find(kEvery);
  if (at == std::string::npos) return has(stated, "per op") ? "pointwise" : "";
  const std::string nth = stated.substr(at + kEvery.size());
  const int every = nth.starts_with("other") ? 2 : std::atoi(nth.c_str());
  return every > 0 ? fmt::format("{{granularity: full, every: {}}}", every) : "";
}

// The scenario's `recompute`; empty where nothing says it. In a mixture of experts, "norm, act" are
// the norms and the experts' activations.
std::string recompute_of(const Row& row, const Settings& settings) {
  std::string stated = small(row.text("recompute") + " " + row.text("variant"));
  // Kwai's Table 8 says so of its baseline.
  if (has(stated, "full") || has(row.text("variant"), "Megatron-LM of")) return "full";
  if (std::string between = recompute_between(stated); !between.empty()) return between;
  stated = stated.substr(0, stated.find('('));  // flags repeat the words
  if (const std::string note = row.text("note"); small(note).starts_with("recompute ")) {
    stated += small(note.substr(0, note.find(';')));
  }
  std::vector<std::string> modules;
  for (const ModuleWord& each : kModuleWords) {
    const size_t at = stated.find(each.word);
    if (at == std::string::npos) continue;
    stated.erase(at, std::string(each.word).size());
    if (std::ranges::find(modules, each.module) == modules.end()) modules.emplace_back(each.module);
  }
  if (!modules.empty()) return fmt::format("{}", fmt::join(modules, "+"));
  if (has(stated, "none")) return "none";
  return settings.recompute == "stated" ? "" : settings.recompute;
}

// Sizes that a scenario needs, completed from each other.
struct RunSizes {
  int tensor = 1, pipeline = 1, chunks = 1, context = 1, expert = 1, expert_tensor = 1;
  int gpus = 1, data = 1, micro = 1, batch = 1, microbatches = 1, sequence = 1;
};

std::string fault(const char* what) { return fmt::format("{} is not stated", what); }

// The first size that is missing or does not fit the others; else empty.
std::string read_sizes(const Row& row, const Settings& settings, RunSizes& sizes) {
  const auto size = [&row](const char* key) { return row.size(key).value_or(1); };
  for (const char* key : {"gpus", "tp", "pp"}) {
    if (!row.size(key)) return fault(key);
  }
  const auto sequence = row.size("seq") ? row.size("seq") : settings.sequence;
  if (!sequence) return fault("seq");
  sizes.tensor = size("tp");
  sizes.pipeline = size("pp");
  sizes.context = size("cp");
  sizes.expert = size("ep");
  sizes.expert_tensor = size("etp");
  sizes.chunks = sizes.pipeline > 1 ? size("vpp") : 1;
  sizes.gpus = size("gpus");
  sizes.sequence = *sequence;
  const int of_model = sizes.tensor * sizes.pipeline * sizes.context;
  const auto data = row.size("dp");
  if (sizes.gpus % of_model != 0 || (data && *data * of_model != sizes.gpus)) {
    return fmt::format("inconsistent: {} GPUs are not dp {} x tp {} x pp {} x cp {}", sizes.gpus,
                       data.value_or(sizes.gpus / of_model), sizes.tensor, sizes.pipeline,
                       sizes.context);
  }
  sizes.data = sizes.gpus / of_model;
  const auto micro = row.size("mbs") ? row.size("mbs") : settings.micro_batch;
  if (!micro) return fault("mbs");
  sizes.micro = *micro;
  const int batch_of_rank = size("batch_per_dp");
  const auto batch = row.size("gbs");
  if (!batch && batch_of_rank == 1) return fault("gbs");
  sizes.batch = batch.value_or(batch_of_rank * sizes.data);
  const int of_step = sizes.micro * sizes.data;
  if (sizes.batch % of_step != 0) {
    return fmt::format("inconsistent: gbs {} does not divide by mbs {} x dp {}", sizes.batch,
                       sizes.micro, sizes.data);
  }
  sizes.microbatches = sizes.batch / of_step;
  return "";
}

std::string schedule_of(const Row& row, const RunSizes& sizes, const Version& version) {
  const std::string stated = row.text("schedule");
  for (const char* name : {"v-half", "v-min", "zb-v", "zbv", "zero-bubble"}) {
    if (has(stated, name)) return std::string(name) == "zbv" ? "zb-v" : name;
  }
  const std::string note = row.text("note");
  const bool overlap =
      version.overlap_experts || has(note, "1F1B overlap") || has(note, "A2A overlap");
  // Without pipelines too Megatron-Core runs F of a microbatch beside B of another.
  const bool pairs = sizes.chunks > 1 || sizes.pipeline == 1;
  if (!overlap || !pairs) return sizes.chunks == 1 ? "1f1b" : "interleaved-1f1b";
  // A2A_OVERLAP of NVIDIA's script (Megatron-MoE-ModelZoo, sbatch_benchmarking.sh) sets both.
  return "{name: interleaved-1f1b, overlap_moe_expert_parallel_comm: true, "
         "delay_wgrad_compute: true}";
}

// ZeRO's stages by their other names; its first is the distributed optimizer, which groups of data
// ranks may have (zero1_group).
std::string sharding_text(const Row& row, const Settings& settings, int data) {
  const auto zero = row.number("zero_stage");
  const int group = row.size("zero1_group").value_or(data);
  if (group < data && data % group == 0) {
    return fmt::format("use_distributed_optimizer: true, data_parallel_shard_degree: {}", group);
  }
  if (zero == 2) return "data_parallel_sharding_strategy: optim_grads";
  if (zero == 3) return "data_parallel_sharding_strategy: optim_grads_params";
  return fmt::format("use_distributed_optimizer: {}",
                     zero ? *zero >= 1 : settings.distributed_optimizer);
}

std::string memory_text(const Settings& settings, const Row& row, const std::string& precision,
                        int data) {
  return fmt::format(
      "memory: {{kind: model, precision: {}, fp8_param_gather: {}, {}, "
      "accumulate_allreduce_grads_in_fp32: {}, flash_attention: {}, dropout: {}, "
      "cross_entropy_loss_fusion: {}, bias_swiglu_fusion: {}}}\n",
      precision, has(precision, "fp8") && settings.fp8_parameters,
      sharding_text(row, settings, data), settings.fp32_gradients, settings.flash_attention,
      settings.dropout, settings.fused_loss, settings.fused_gate);
}

std::string parallel_text(const RunSizes& sizes, const Settings& settings,
                          const std::string& where) {
  return fmt::format(
      "parallel: {{pipeline_model_parallel_size: {}, tensor_model_parallel_size: {}, "
      "data_parallel_size: {}, context_parallel_size: {}, expert_model_parallel_size: {}, "
      "expert_tensor_parallel_size: {}, sequence_parallel: {}{}}}\n",
      sizes.pipeline, sizes.tensor, sizes.data, sizes.context, sizes.expert, sizes.expert_tensor,
      settings.sequence_parallel && sizes.tensor > 1, where);
}

// DeepEP and HybridEP send a token once to a node.
std::string experts_text(const Row& row, const Settings& settings) {
  const std::string said = row.text("dispatcher") + " " + row.text("note");
  std::string text;
  if (has(said, "DeepEP") || has(said, "HybridEP") || has(said, "flex")) {
    text += ", moe_token_dispatcher_type: flex";
    if (has(said, "HybridEP")) text += ", moe_flex_dispatcher_backend: hybridep";
  }
  const bool balanced = has(said, "force-balanced") || has(said, "forced balance");
  if (settings.forced_balance || balanced) text += ", moe_router_force_load_balancing: true";
  return text;
}

// How a row's operations reach the GPU, where it says so.
std::string launch_text(const Row& row) {
  if (row.flag("cuda_graph").value_or(false)) return ", launch: cuda_graphs";
  return has(row.text("system"), "compile") ? ", launch: compiled" : "";
}

std::string cost_text(const Row& row, const Settings& settings, bool moe, const Version& version) {
  const bool tensor = row.flag("tp_comm_overlap").value_or(settings.overlap_tensor && !moe);
  return fmt::format(
      "cost: {{kind: roofline, software: {}, tp_comm_overlap: {}, overlap_grad_reduce: {}, "
      "overlap_param_gather: {}{}{}}}\n",
      version.software, tensor, settings.overlap_gradients,
      settings.overlap_parameters && settings.distributed_optimizer, launch_text(row),
      moe ? experts_text(row, settings) : "");
}

}  // namespace

Asked scenario_of(const Row& row, const Rules& rules) {
  const Rule& rule = rules.of(row.table());
  const Settings& settings = rule.settings;
  Asked asked;
  asked.gpu = row.text("gpu").empty() ? settings.gpu : row.text("gpu");
  asked.precision = precision_of(row, settings);
  const std::string cluster = cluster_of(asked.gpu, rules);
  const std::string recompute = recompute_of(row, settings);
  RunSizes sizes;
  if (cluster.empty()) {
    asked.missing = asked.gpu.empty() ? fault("gpu")
                                      : fmt::format("no GPU of the catalogue is '{}'", asked.gpu);
    return asked;
  }
  asked.gpu = cluster_of_catalog(cluster, {}).gpu.name;
  asked.missing = read_sizes(row, settings, sizes);
  if (asked.missing.empty() && asked.precision.empty()) asked.missing = fault("precision");
  if (asked.missing.empty() && recompute.empty()) asked.missing = fault("recompute");
  if (!asked.missing.empty()) return asked;
  const int stages = sizes.pipeline * sizes.chunks;
  const Named model = model_of(row, rules, settings, sizes.tensor, stages);
  asked.missing = model.missing;
  if (!asked.missing.empty()) return asked;
  asked.scenario = fmt::format("model: {}\ncluster: {}\nschedule: {}\n", model.yaml, cluster,
                               schedule_of(row, sizes, version_of(rule, row)));
  asked.scenario += parallel_text(
      sizes, settings,
      (sizes.chunks > 1 ? fmt::format(", virtual_pipeline_model_parallel_size: {}", sizes.chunks)
                        : "") +
          placing(row, settings, model, stages));
  asked.scenario +=
      fmt::format("batch: {{global_batch_size: {}, micro_batch_size: {}, seq_length: {}}}\n",
                  sizes.batch, sizes.micro, sizes.sequence);
  asked.scenario += memory_text(settings, row, asked.precision, sizes.data);
  asked.scenario += cost_text(row, settings, model.moe, version_of(rule, row));
  if (recompute != "none") asked.scenario += fmt::format("recompute: {}\n", recompute);
  if (const auto ratio = row.number("offload_ratio"); ratio && *ratio > 0 && *ratio <= 1) {
    asked.scenario += fmt::format("offload: {{ratio: {}}}\n", *ratio);
  }
  if (settings.blocking) asked.scenario += "framework: {transfers: blocking}\n";
  return asked;
}

}  // namespace pipesim::runs
