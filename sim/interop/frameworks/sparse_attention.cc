#include "sim/interop/frameworks/sparse_attention.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/interop/frameworks/number_list.h"

namespace pipesim {
namespace {

// One letter a layer, as scenarios have them: S selects its tokens, T reuses the layer before's.
std::string sparse_letters(std::string letters, long every, long alone, long layers) {
  if (!letters.empty()) {
    // MindSpeed writes S for a layer that reuses; any other letter selects.
    for (char& letter : letters) letter = letter == 'S' ? 'T' : 'S';
    return letters;
  }
  for (long i = 0; i < layers; ++i) {
    letters += i < alone || (i - alone + 1) % every == 0 ? 'S' : 'T';
  }
  return letters.find('T') == std::string::npos ? "S" : letters;
}

constexpr long kUsualRatio = 128;
// Tokens that become one where an indexer chooses among them, as both frameworks have it.
constexpr long kIndexedRatio = 4;

// A letter a working layer, by how many tokens become one in it. Nothing where a layer has no ratio
// or two layers have other ones without an indexer.
std::optional<std::string> compressed_letters(const std::vector<long>& ratios,
                                              const MegatronSizes& sizes) {
  std::string letters;
  long other = 0;
  for (long i = 0; i < sizes.layers; ++i) {
    if (std::ranges::count(sizes.idle_layers, i) > 0) continue;
    if (std::cmp_greater_equal(i, ratios.size())) return std::nullopt;
    const long ratio = ratios[static_cast<size_t>(i)];
    const bool all = ratio > 1 && ratio != kIndexedRatio;
    if (all && other > 0 && ratio != other) return std::nullopt;
    if (all) other = ratio;
    letters += ratio <= 1 ? 'W' : all ? 'Y' : 'X';
  }
  return letters;
}

// The ratio of layers Y.
long whole_ratio(const std::vector<long>& ratios) {
  const auto found =
      std::ranges::find_if(ratios, [](long ratio) { return ratio > 1 && ratio != kIndexedRatio; });
  return found == ratios.end() ? kUsualRatio : *found;
}

// Primus' models of DeepSeek-V4, which have its attention and residual streams by their name.
bool is_primus_v4(const Settings& settings) { return settings.seen("model_type") == "deepseek_v4"; }

// Each layer's ratio, where compression is on.
std::optional<std::string> compression_ratios(Settings& settings) {
  const bool on = settings.is_set({"kv_compress"}) || is_primus_v4(settings);
  return on ? settings.text({"compress_ratios"}) : std::nullopt;
}

// Keeps the ratio, the window, and the ranks of queries and outputs.
void put_compressed(Settings& settings, const MegatronSizes& sizes, const std::string& listed,
                    Draft& draft) {
  constexpr long kUsualGroups = 8;
  const std::vector<long> ratios = numbers_of(listed);
  const auto window = settings.number({"sliding_window_size", "attn_sliding_window"}, 1);
  const auto queries = settings.number({"q_lora_rank"}, 1);
  const auto outputs = settings.number({"o_lora_rank"}, 1);
  const long groups = settings.number({"o_groups"}, 1).value_or(kUsualGroups);
  const auto letters = compressed_letters(ratios, sizes);
  if (!letters || !queries || !outputs || !window) {
    not_understood(draft, "compress_ratios", fmt::format("compress_ratios {}", listed));
    return;
  }
  put(draft.model, "attention_window", *window);
  put(draft.model, "layer_pattern", "\"" + *letters + "\"");
  put(draft.model, "compressed_attention.q_lora_rank", *queries);
  put(draft.model, "compressed_attention.output_groups", groups);
  put(draft.model, "compressed_attention.output_rank", *outputs);
  put(draft.model, "compressed_attention.ratio", whole_ratio(ratios));
  put(draft.model, "compressed_attention.indexed_ratio", kIndexedRatio);
}

// Kernels that read the chosen tokens alone. MindSpeed has one setting for them, Primus two by
// name.
bool has_sparse_kernels(Settings& settings) {
  const bool kernel = settings.is_set({"use_sparse_flash_attn"});
  if (!is_primus_v4(settings)) return kernel;
  const auto window = settings.text({"use_v4_attention_backend"}).value_or("eager");
  const auto indexed = settings.text({"use_v4_csa_attention_backend"}).value_or("eager");
  return window != "eager" && indexed != "eager";
}

}  // namespace

void rename_compressed_attention(Settings& settings) {
  if (!compression_ratios(settings)) return;
  const bool primus = is_primus_v4(settings);
  const auto size = settings.number({primus ? "kv_channels" : "qk_head_dim"}, 1);
  const auto turned = static_cast<double>(settings.number_or_usual("qk_pos_emb_head_dim"));
  const bool sinks = !primus || settings.is_set({"attn_sink"});
  const auto say = [&](const char* name, const std::string& value) {
    settings.add({name, {value}, settings.place("compress_ratios")});
  };
  // All heads share one key, which is its value. Its norms count as the compression's.
  say("multi_latent_attention", "false");
  say("qk_layernorm", "false");
  say("group_query_attention", "true");
  say("num_query_groups", "1");
  say("position_embedding_type", "rope");
  if (sinks) say("softmax_type", "learnable");
  if (!size) return;
  say("kv_channels", fmt::format("{}", *size));
  say("rotary_percent", fmt::format("{:g}", turned / static_cast<double>(*size)));
}

void put_residual_streams(Settings& settings, Draft& draft) {
  if (const auto block = settings.number({"attn_res_block_size"}, 1)) {
    put(draft.model, "residual_block", *block);
  }
  const bool asked = settings.is_set({"enable_mhc", "enable_mhc_connections"});
  const long streams = settings.number({"hc_mult", "mhc_num_residual_streams"}, 1).value_or(4);
  if (!asked && !is_primus_v4(settings)) return;
  (void)settings.find({"model_type"});
  if (streams > 1) put(draft.model, "residual_streams", streams);
}

void put_sparse_attention(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const bool sparse = settings.is_set({"enable_dsa_indexer"}) || is_primus_v4(settings);
  const long layers = sizes.layers - static_cast<long>(sizes.idle_layers.size());
  const long heads = settings.number({"index_n_heads"}, 1).value_or(64);
  const long size = settings.number({"index_head_dim"}, 1).value_or(128);
  const long topk = settings.number({"index_topk"}, 1).value_or(2048);
  const long every = settings.number({"index_topk_freq"}, 1).value_or(1);
  const long alone = settings.number({"index_skip_topk_offset"}, 0).value_or(2);
  const std::string listed = settings.text({"index_topk_pattern"}).value_or("");
  const bool kernel = has_sparse_kernels(settings);
  const auto ratios = compression_ratios(settings);
  // Sparse attention in the latent space is what the model counts.
  if (settings.is_set({"enable_mla_absorb"}) && !sparse) {
    not_understood(draft, "enable_mla_absorb", "enable_mla_absorb, without sparse attention");
  }
  if (ratios && !sparse) {
    not_understood(draft, "compress_ratios", "compress_ratios without enable_dsa_indexer");
  }
  if (!sparse) return;
  if (!kernel) {
    not_understood(draft, "enable_dsa_indexer",
                   "enable_dsa_indexer without use_sparse_flash_attn, which attends to all tokens");
  }
  if (ratios) {
    put_compressed(settings, sizes, *ratios, draft);
  } else {
    const std::string letters = sparse_letters(listed, every, alone, layers);
    if (std::cmp_not_equal(letters.size(), layers) && letters.size() > 1) {
      not_understood(draft, "index_topk_pattern", fmt::format("index_topk_pattern {}", letters));
      return;
    }
    put(draft.model, "layer_pattern", "\"" + letters + "\"");
  }
  put(draft.model, "sparse_attention.num_heads", heads);
  put(draft.model, "sparse_attention.head_size", size);
  put(draft.model, "sparse_attention.topk", topk);
}

}  // namespace pipesim
