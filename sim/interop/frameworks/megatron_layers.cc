#include "sim/interop/frameworks/megatron_layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "sim/interop/frameworks/number_list.h"
#include "sim/interop/frameworks/sparse_attention.h"

namespace pipesim {
namespace {

// The shortest text that the whole one repeats, its last repetition cut or not.
std::string period_of(const std::string& text) {
  for (size_t length = 1; length < text.size(); ++length) {
    bool repeats = true;
    for (size_t i = length; i < text.size() && repeats; ++i) repeats = text[i] == text[i - length];
    if (repeats) return text.substr(0, length);
  }
  return text;
}

// A letter a layer: `some` for those that the setting counts, `full` for the others. An int N: of
// every N layers the last is full; else a list, 1 for those that it counts. Empty: neither.
std::string letters_of(const std::string& text, long layers, char some, char full) {
  long every = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
  std::string letters;
  if (error == std::errc() && end == text.data() + text.size() && every > 0) {
    for (long i = 0; i < layers; ++i) letters += (i + 1) % every == 0 ? full : some;
    return letters;
  }
  std::vector<int> flags = frequencies_of(text, layers);
  if (flags.empty()) {
    for (const long each : numbers_of(text)) flags.push_back(static_cast<int>(each));
    if (std::cmp_not_equal(flags.size(), layers)) return "";
  }
  for (const int flag : flags) letters += flag == 1 ? some : full;
  return letters;
}

void put_pattern(const char* setting, const std::string& text, const std::string& letters,
                 Draft& draft) {
  if (letters.empty()) {
    not_understood(draft, setting, fmt::format("{} {}", setting, text));
  } else {
    put(draft.model, "layer_pattern", "\"" + period_of(letters) + "\"");
  }
}

struct Size {
  const char* key;
  const char* setting;
};

void put_sizes(Settings& settings, std::initializer_list<Size> sizes, Draft& draft) {
  for (const auto& [key, setting] : sizes) {
    put(draft.model, std::string("linear_attention.") + key, settings.number_or_usual(setting));
  }
}

// Mamba-2 as Megatron-LM's mixer has it: twice the hidden size in heads, or MindSpeed's factor.
void put_mamba(Settings& settings, long hidden, Draft& draft) {
  const long head = settings.number_or_usual("mamba_head_dim");
  const auto heads = settings.number({"mamba_num_heads"}, 1);
  const long factor = settings.number({"mamba_expand"}, 1).value_or(2);
  const long conv = settings.number({"mamba_d_conv"}, 1).value_or(4);
  const long chunk = settings.number({"mamba_chunk_size"}, 1).value_or(128);
  put(draft.model, "linear_attention.kind", "mamba2");
  put(draft.model, "linear_attention.num_heads",
      heads.value_or(std::max(1L, factor * hidden / head)));
  put_sizes(settings,
            {{"head_size", "mamba_head_dim"},
             {"key_heads", "mamba_num_groups"},
             {"key_head_size", "mamba_state_dim"}},
            draft);
  put(draft.model, "linear_attention.conv_kernel", conv);
  put(draft.model, "linear_attention.chunk_size", chunk);
}

// Gated delta attention, short convolutions, or Kimi's, whose decays and gate have a head's rank.
void put_delta(Settings& settings, const std::string& kind, Draft& draft) {
  put(draft.model, "linear_attention.kind", kind);
  put_sizes(settings,
            {{"num_heads", "linear_num_value_heads"},
             {"head_size", "linear_value_head_dim"},
             {"key_heads", "linear_num_key_heads"},
             {"key_head_size", "linear_key_head_dim"}},
            draft);
  put(draft.model, "linear_attention.conv_kernel",
      settings.number({"mamba_d_conv"}, 1)
          .value_or(settings.number_or_usual("linear_conv_kernel_dim")));
  if (const auto chunk = settings.number({"mamba_chunk_size", "kda_chunk_size"}, 1)) {
    put(draft.model, "linear_attention.chunk_size", *chunk);
  }
  (void)settings.find({"mamba_expand"});  // its heads have sizes of their own
  if (kind != "kda") return;
  const long rank = settings.number_or_usual("linear_value_head_dim");
  put(draft.model, "linear_attention.step_rank", rank);
  const bool whole = settings.is_set({"kda_use_full_rank_gate"});
  if (!whole) put(draft.model, "linear_attention.gate_rank", rank);
}

void put_gated_delta(Settings& settings, long layers, Draft& draft) {
  const auto variant = settings.text({"experimental_attention_variant"});
  const auto frequency = settings.text({"linear_attention_freq"});
  const long interval = settings.number({"full_attention_interval"}).value_or(0);  // MindSpeed's
  if (!variant && interval == 0) return;
  const bool delta = !variant || *variant == "gated_delta_net" || *variant == "gdn";
  if (!delta && *variant != "kda" && *variant != "short_conv") {
    not_understood(draft, "experimental_attention_variant",
                   fmt::format("experimental_attention_variant {}", *variant));
    return;
  }
  const std::string every = interval > 0 ? fmt::format("{}", interval) : frequency.value_or("1");
  put_pattern("linear_attention_freq", every, letters_of(every, layers, 'R', 'G'), draft);
  put_delta(settings, delta ? "gated_delta" : *variant, draft);
}

// (left, right), of which a causal model sees the left and the token itself.
void put_window(Settings& settings, long layers, Draft& draft) {
  // MindSpeed's, of every second layer from the first on.
  if (const auto every_second = settings.number({"interleave_sliding_window"}, 1)) {
    put(draft.model, "attention_window", *every_second);
    put(draft.model, "layer_pattern", "\"WG\"");
    return;
  }
  const bool off = !settings.flag({"use_sliding_window"}).value_or(true);
  const auto all = settings.number({"sliding_window"}, 1);  // Pai-Megatron-Patch's
  if (all && !off) {
    put(draft.model, "attention_window", *all);
    put(draft.model, "layer_pattern", "\"W\"");
    return;
  }
  const auto window = settings.text({"window_size"});
  const auto skipped = settings.text({"window_attn_skip_freq"});
  const std::vector<long> sides = numbers_of(window.value_or(""));
  constexpr long kMostTokens = 1L << 40;
  if (sides.empty() || sides[0] <= 0 || sides[0] > kMostTokens) return;
  put(draft.model, "attention_window", sides[0] + 1);
  const std::string letters =
      skipped ? letters_of(*skipped, layers, 'W', 'G') : std::string(layers, 'W');
  put_pattern("window_attn_skip_freq", skipped.value_or(""), letters, draft);
}

// Which layers have experts, from the first that may on: the first of every so many.
struct ExpertLayers {
  long dense = 0;
  long every = 1;
};

std::optional<ExpertLayers> expert_layers(const std::vector<int>& flags) {
  const auto size = static_cast<long>(flags.size());
  const long dense = std::ranges::find(flags, 1) - flags.begin();
  if (dense == size) return std::nullopt;
  long every = 1;
  while (dense + every < size && flags[dense + every] == 0) ++every;
  for (long i = dense; i < size; ++i) {
    if ((flags[i] == 1) != ((i - dense) % every == 0)) return std::nullopt;
  }
  return ExpertLayers{dense, every};
}

std::vector<int> expert_flags(const std::string& text, long layers) {
  std::vector<int> flags = frequencies_of(text, layers);
  if (!flags.empty()) return flags;
  for (const long each : numbers_of(text)) flags.push_back(static_cast<int>(each));
  return std::cmp_equal(flags.size(), layers) ? flags : std::vector<int>{};
}

bool is_of_deepspeed(const Settings& settings) {
  return settings.has("moe_expert_parallel_size") || settings.has("deepspeed") ||
         settings.has("deepspeed_config");
}

void put_expert_layers(Settings& settings, long layers, Draft& draft) {
  const auto stated = settings.text({"moe_layer_freq"});
  const std::string text = stated && *stated != "-1" ? *stated : "1";
  const auto behind = settings.number({"first_k_dense_replace"}, -1);  // MindSpeed's; -1: none
  // Megatron-DeepSpeed's, of which every second layer has experts unless it says otherwise.
  auto interval = settings.number({"expert_interval"}, 1);
  if (is_of_deepspeed(settings) && !interval && !stated) interval = 2;
  std::vector<int> flags = expert_flags(text, layers);
  for (long i = 0; i < std::min(behind.value_or(0), static_cast<long>(flags.size())); ++i) {
    flags[i] = 0;
  }
  auto found = expert_layers(flags);
  if (interval) found = ExpertLayers{*interval - 1, *interval};
  if (!found) {
    not_understood(draft, "moe_layer_freq",
                   fmt::format("moe_layer_freq {}: experts stand in one of every so many layers "
                               "behind the first dense ones",
                               text));
    return;
  }
  if (found->dense > 0) put(draft.model, "moe.first_dense_layers", found->dense);
  if (found->every > 1) put(draft.model, "moe.every", found->every);
}

// A token's experts stand in so many groups of them.
void put_expert_groups(Settings& settings, Draft& draft) {
  const auto groups = settings.number({"moe_router_num_groups"}, 1);
  const auto chosen = settings.number({"moe_router_group_topk"}, 1);
  if (!chosen || groups.value_or(1) == 1) return;
  put(draft.model, "moe.num_groups", *groups);
  put(draft.model, "moe.group_topk", *chosen);
}

void put_shared_experts(Settings& settings, long size, Draft& draft) {
  const auto shared =
      settings.number({"moe_shared_expert_intermediate_size", "shared_moe_ffn_hidden_size"});
  const auto number = settings.number({"n_shared_experts"});
  const bool gate = settings.is_set({"moe_shared_expert_gate", "shared_expert_gate"});
  if (shared.value_or(0) == 0 && number.value_or(0) == 0) return;
  if (shared.value_or(0) > 0 && *shared % size != 0) {
    put(draft.model, "moe.shared_experts", 1);
    put(draft.model, "moe.shared_ffn_hidden_size", *shared);
  } else {
    put(draft.model, "moe.shared_experts", shared.value_or(0) > 0 ? *shared / size : *number);
  }
  if (gate) put_flag(draft.model, "moe.shared_gate", true);
}

// Megatron-DeepSpeed takes a number for each layer with experts.
void stop_at_unequal_experts(Settings& settings, Draft& draft) {
  const std::string text = settings.text({"num_experts"}).value_or("");
  const std::vector<long> numbers = numbers_of(text);
  const bool equal = std::ranges::all_of(numbers, [&](long n) { return n == numbers.front(); });
  if (!equal) not_understood(draft, "num_experts", fmt::format("num_experts {}", text));
}

// The experts per token that compute, under balanced routing. Stops where that is no whole number.
long computing_experts(Settings& settings, long experts, long topk, Draft& draft) {
  const auto idle = settings.number({"num_zero_experts"});
  if (idle.value_or(0) == 0) return topk;
  const long all = experts + *idle;
  if (topk * experts % all == 0) {
    draft.notes.push_back(fmt::format(
        "{} of {} experts do nothing: under balanced routing {} of a token's {} compute", *idle,
        all, topk * experts / all, topk));
    return topk * experts / all;
  }
  not_understood(
      draft, "num_zero_experts",
      fmt::format("num_zero_experts {}: of a token's {} experts no whole number computes", *idle,
                  topk));
  return topk;
}

// Every so many layers that are Mamba's becomes another, the first after `run` of them.
void replace_evenly(std::string& layers, double run, char other) {
  constexpr double kHalf = 0.5;
  double left = run;
  for (char& layer : layers) {
    if (layer != 'M') continue;
    if (left < kHalf) {
      layer = other;
      left += run;
    } else {
      left -= 1;
    }
  }
}

// Megatron-LM's pattern where shares of the layers are attention and MLPs: even runs of Mamba
// layers between the first, among which the others stand (mamba_hybrid_layer_allocation.py).
std::string pattern_of_shares(Settings& settings, Draft& draft) {
  const double attention = settings.real({"hybrid_attention_ratio"}).value_or(0);
  const double mlp = settings.real({"hybrid_mlp_ratio"}).value_or(0);
  const auto layers = settings.number({"num_layers"}, 1);
  constexpr long kMostLayers = 1 << 16;
  if (attention == 0 && mlp == 0) return "";
  if (!layers || *layers > kMostLayers || std::min(attention, mlp) < 0 || attention + mlp >= 1) {
    not_understood(
        draft, "hybrid_attention_ratio",
        fmt::format("hybrid_attention_ratio {:g}, hybrid_mlp_ratio {:g}", attention, mlp));
    return "";
  }
  // Halves go to the even number, as Python rounds them.
  const auto all = static_cast<double>(*layers);
  const double attending = std::nearbyint(all * attention);
  const double wide = std::nearbyint(all * mlp);
  std::string pattern(static_cast<size_t>(*layers), 'M');
  replace_evenly(pattern, (all - attending) / (attending + 1), '*');
  if (wide > 0) replace_evenly(pattern, (all - attending - wide) / wide, '-');
  return pattern;
}

}  // namespace

std::string hybrid_pattern(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  const bool hybrid = settings.is_set({"is_hybrid_model"});
  auto text = settings.text({"hybrid_layer_pattern", "hybrid_override_pattern"});
  const std::string shares = pattern_of_shares(settings, draft);
  if (!text && !shares.empty()) text = shares;
  if (!text && hybrid) {
    not_understood(draft, "is_hybrid_model", "is_hybrid_model, without a pattern of its layers");
  }
  std::string letters = text.value_or("");
  std::erase_if(letters, [](char c) { return c == '"' || c == '\'' || c == ' '; });
  letters = letters.substr(0, letters.find('/'));  // behind it stand those of MTP modules
  if (letters.find('|') != std::string::npos) sizes.layers_of_stage = {0};
  std::string layers;
  for (const char letter : letters) {
    if (letter == '|') {
      sizes.layers_of_stage.push_back(0);
      continue;
    }
    if (!sizes.layers_of_stage.empty()) ++sizes.layers_of_stage.back();
    layers += letter;
  }
  if (layers.find_first_not_of("M*-E") == std::string::npos) return layers;
  not_understood(draft, "hybrid_layer_pattern", fmt::format("hybrid_layer_pattern {}", *text));
  return "";
}

// A layer is of one kind: settings of two cannot both place it.
void keep_one_pattern(Draft& draft) {
  const auto is_pattern = [](const auto& entry) { return entry.first == "layer_pattern"; };
  if (std::ranges::count_if(draft.model, is_pattern) < 2) return;
  const auto first = std::ranges::find_if(draft.model, is_pattern);
  draft.model.erase(std::remove_if(std::next(first), draft.model.end(), is_pattern),
                    draft.model.end());
  not_understood(draft, "layer_pattern",
                 "layer_pattern: windows, linear and sparse attention, of which two are set");
}

void put_layer_kinds(Settings& settings, const MegatronSizes& sizes, long hidden,
                     const std::string& hybrid, Draft& draft) {
  if (hybrid.empty()) {
    const long layers = sizes.layers - static_cast<long>(sizes.idle_layers.size());
    put_window(settings, layers, draft);
    put_gated_delta(settings, layers, draft);
    put_sparse_attention(settings, sizes, draft);
    keep_one_pattern(draft);
    return;
  }
  put(draft.model, "layer_pattern", "\"" + period_of(hybrid) + "\"");
  if (hybrid.find('M') == std::string::npos) return;
  if (sizes.mixer == "mamba2") {
    put_mamba(settings, hidden, draft);
  } else {
    put_delta(settings, sizes.mixer, draft);
  }
}

void put_experts(Settings& settings, long layers, long ffn, MegatronSizes& sizes, Draft& draft) {
  const auto experts = settings.number({"num_experts", "num_moe_experts"}, 1);
  const long topk = settings.number({"moe_router_topk"}, 1).value_or(2);
  // Megatron-DeepSpeed's experts are one a token unless it says otherwise.
  const auto theirs = settings.number({"topk"}, 1);
  (void)settings.find({"moe_expert_parallel_size"});
  const bool theirs_alone = is_of_deepspeed(settings) && !settings.has("moe_router_topk");
  const long size =
      settings.number({"moe_ffn_hidden_size", "moe_intermediate_size"}, 1).value_or(ffn);
  const bool bias = settings.is_set({"moe_router_enable_expert_bias"});
  const auto latent = settings.number({"moe_latent_size"}, 1);
  if (experts.value_or(1) <= 1) return;
  stop_at_unequal_experts(settings, draft);
  sizes.experts = true;
  put(draft.model, "moe.num_experts", *experts);
  put(draft.model, "moe.router_topk",
      theirs         ? *theirs
      : theirs_alone ? 1
                     : computing_experts(settings, *experts, topk, draft));
  put(draft.model, "moe.ffn_hidden_size", size);
  if (latent) put(draft.model, "moe.latent_size", *latent);
  put_shared_experts(settings, size, draft);
  put_expert_groups(settings, draft);
  if (bias) put_flag(draft.model, "moe.router_bias", true);
  // A hybrid pattern says it.
  if (std::ranges::none_of(draft.model, [](const auto& entry) {
        return entry.first == "layer_pattern" && entry.second.find('E') != std::string::npos;
      })) {
    put_expert_layers(settings, layers, draft);
  } else {
    (void)settings.find({"moe_layer_freq"});
  }
}

}  // namespace pipesim
