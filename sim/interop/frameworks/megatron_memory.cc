#include "sim/interop/frameworks/megatron_memory.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "models/offload_modules.h"

namespace pipesim {
namespace {

// "bf16", or what Bridge's files call it, "torch.bfloat16".
std::string precision_of(std::string name) {
  if (name.starts_with("torch.")) name = name.substr(6);
  if (name == "bfloat16") return "bf16";
  if (name == "float16") return "fp16";
  if (name == "float32" || name == "float") return "fp32";
  return name == "uint8" ? "fp8" : name;
}

void put_on_host(Settings& settings, Draft& draft) {
  const double fraction = settings.real({"optimizer_offload_fraction"}).value_or(1);
  const bool overlaps = settings.is_set({"overlap_cpu_optimizer_d2h_h2d"});
  if (fraction == 0) return;
  put(draft.memory, "optimizer_offload_fraction", fmt::format("{:g}", fraction));
  if (overlaps) put_flag(draft.memory, "overlap_cpu_optimizer_d2h_h2d", true);
}

}  // namespace

// Without the precision-aware optimizer these precisions say nothing.
void put_optimizer_state(Settings& settings, bool bf16_weights, Draft& draft) {
  const bool aware = settings.is_set({"use_precision_aware_optimizer"});
  const bool halves = settings.is_set({"o2_optimizer"});      // MindSpeed's
  const bool bytes = settings.is_set({"use_bnb_optimizer"});  // Megatron-DeepSpeed's
  if (halves || bytes) {
    for (const char* key : {"exp_avg_dtype", "exp_avg_sq_dtype"}) {
      put(draft.memory, key, bytes ? "fp8" : "bf16");
    }
  }
  bool whole_copy = true;
  for (const char* key :
       {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype"}) {
    const auto given = settings.text({key});
    const std::string precision = precision_of(given.value_or("fp32"));
    if (!aware || precision == "fp32") continue;
    static constexpr std::array<std::string_view, 3> kFewerBits{"fp16", "bf16", "fp8"};
    if (std::ranges::find(kFewerBits, precision) == kFewerBits.end()) {
      not_understood(draft, key, fmt::format("{} {}", key, precision));
      continue;
    }
    put(draft.memory, key, precision);
    whole_copy = whole_copy && std::string_view(key) != "main_params_dtype";
  }
  const bool remainders = settings.flag({"store_param_remainders"}).value_or(true);
  const bool reused = settings.is_set({"reuse_fp32_param"}) && bf16_weights;  // MindSpeed's
  if (settings.is_set({"swap_optimizer"})) {
    put_flag(draft.memory, "swap_optimizer", true);  // MindSpeed's
  } else if (settings.is_set({"optimizer_cpu_offload", "cpu_optimizer"})) {
    put_on_host(settings, draft);
  } else if (reused) {
    put_flag(draft.memory, "store_param_remainders", true);
  } else if (aware && remainders && whole_copy && bf16_weights) {
    put_flag(draft.memory, "store_param_remainders", true);
    draft.notes.emplace_back(
        "the optimizer keeps of fp32 weights what bf16 ones lack (store_param_remainders), as "
        "Transformer Engine does from 2.1 on");
  }
}

bool put_autocast(Settings& settings, const std::string& precision, Draft& draft) {
  const bool whole = settings.flag({"megatron_amp_O2"}).value_or(true);
  // FSDP gathers weights in 16 bits, whatever its shards are in.
  const bool gathers = has_key(draft.memory, "data_parallel_sharding_strategy");
  if (whole || gathers || precision == "fp32") return false;
  put_flag(draft.memory, "autocast", true);
  return true;
}

namespace {

// NeMo 1's prompts, adapters and scales (IA3), which it learns beside a frozen model.
void put_learned_prompts(Settings& settings, const std::string& style, Draft& draft) {
  if (style == "inference") {
    not_understood(draft, "virtual_prompt_style", "virtual_prompt_style inference");
    return;
  }
  const long rank = settings.number({"adapter_dim"}, 1).value_or(1);
  put(draft.memory, "lora_rank", rank);
  draft.notes.push_back(
      fmt::format("virtual_prompt_style {}: the model is frozen, with adapters of rank {} beside "
                  "every linear layer; prompts are tokens of its sequence",
                  style, rank));
}

}  // namespace

void put_adapters(Settings& settings, Draft& draft) {
  if (const auto style = settings.text({"virtual_prompt_style"})) {
    put_learned_prompts(settings, *style, draft);
    return;
  }
  static constexpr std::array<std::string_view, 3> kWhole{"full", "none", "None"};
  const Setting* kind = settings.find({"train_type", "tuner_type", "peft_scheme", "peft"});
  // "megatron.bridge.peft.lora.LoRA" of Bridge's objects.
  const std::string said = kind == nullptr ? "" : kind->text();
  const std::string name = said.substr(said.rfind('.') + 1);
  const bool lora = kind == nullptr ? settings.has("lora_r") : name == "lora" || name == "LoRA";
  if (kind != nullptr && !lora && std::ranges::count(kWhole, said) == 0) {
    not_understood(draft, kind->name, fmt::format("{} {}", kind->name, said));
  }
  if (!lora) return;
  const auto rank = settings.number({"lora_rank", "lora_r", "adapter_dim", "dim", "peft_dim"}, 1);
  if (!rank) draft.missing.emplace_back("the rank of its adapters: lora_rank=N");
  put(draft.memory, "lora_rank", rank.value_or(1));
  if (const auto targets = settings.text({"lora_target_modules", "target_modules"})) {
    draft.notes.push_back(
        fmt::format("adapters beside every linear layer, where the settings name {}", *targets));
  }
}

namespace {

// Megatron-Core's modules, whose inputs are what MindSpeed's saves.
std::string_view offloaded_of(std::string_view swapped) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"input_norm", "attn_norm"},
      {"input_layernorm", "attn_norm"},
      {"self_attention", "qkv_linear,core_attn,attn_proj"},
      {"post_attention_norm", "mlp_norm"},
      {"pre_mlp_layernorm", "mlp_norm"}};
  const auto* const found =
      std::ranges::find(kNames, swapped, [](const auto& p) { return p.first; });
  return found == std::end(kNames) ? "" : found->second;
}

// MindSpeed's swap_attention, as a list of modules that offload. Empty: it is off.
std::string swapped_modules(Settings& settings, Draft& draft) {
  const bool swaps = settings.is_set({"swap_attention"});
  const auto named =
      settings.text({"swap_modules"}).value_or("input_norm,self_attention,post_attention_norm");
  if (!swaps) return "";
  std::string modules;
  std::istringstream words(named);
  for (std::string word; std::getline(words, word, ',');) {
    const std::string_view ours = offloaded_of(word);
    if (ours.empty()) {
      not_understood(draft, "swap_modules", fmt::format("swap_modules {}", word));
    } else {
      modules += fmt::format("{}{}", modules.empty() ? "" : ",", ours);
    }
  }
  return modules;
}

// MindSpeed's moe_zero_memory level1 beside its overlapped blocks: an expert's first product
// leaves.
bool swaps_experts(Settings& settings) {
  return settings.text({"moe_zero_memory"}) == "level1" && settings.is_set({"moe_fb_overlap"});
}

}  // namespace

void put_kept_activations(Settings& settings, Draft& draft) {
  if (settings.is_set({"activation_func_fp8_input_store"})) {
    put_flag(draft.memory, "activation_func_fp8_input_store", true);
  }
  const auto named = settings.text({"offload_modules"});
  const bool offloads = settings.is_set({"fine_grained_activation_offloading"});
  std::string words = swapped_modules(settings, draft);
  if (swaps_experts(settings)) words += " moe_act";
  if (settings.is_set({"mla_swap_core_attn_out"})) words += " attn_proj";
  if (offloads && named) words += " " + *named;
  std::ranges::replace_if(
      words, [](char c) { return c == ',' || c == '[' || c == ']'; }, ' ');
  std::istringstream stream(words);
  std::vector<std::string> known;
  for (std::string word; stream >> word;) {
    if (std::ranges::count(kOffloadModules, word) > 0) {
      known.push_back(word);
    } else {
      draft.not_modelled.push_back(fmt::format("offload_modules {}", word));
    }
  }
  if (known.empty()) return;
  put(draft.memory, "offload_modules", fmt::format("[{}]", fmt::join(known, ", ")));
}

}  // namespace pipesim
