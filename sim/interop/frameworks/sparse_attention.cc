#include "sim/interop/frameworks/sparse_attention.h"

#include <fmt/format.h>
#include <utility>

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

}  // namespace

void put_sparse_attention(Settings& settings, long layers, Draft& draft) {
  const bool sparse = settings.is_set({"enable_dsa_indexer"});
  const long heads = settings.number({"index_n_heads"}, 1).value_or(64);
  const long size = settings.number({"index_head_dim"}, 1).value_or(128);
  const long topk = settings.number({"index_topk"}, 1).value_or(2048);
  const long every = settings.number({"index_topk_freq"}, 1).value_or(1);
  const long alone = settings.number({"index_skip_topk_offset"}, 0).value_or(2);
  const std::string listed = settings.text({"index_topk_pattern"}).value_or("");
  const bool kernel = settings.is_set({"use_sparse_flash_attn"});
  // Sparse attention in the latent space is what the model counts.
  if (settings.is_set({"enable_mla_absorb"}) && !sparse) {
    not_understood(draft, "enable_mla_absorb", "enable_mla_absorb, without sparse attention");
  }
  if (!sparse) return;
  const std::string letters = sparse_letters(listed, every, alone, layers);
  if (!kernel) {
    not_understood(draft, "enable_dsa_indexer",
                   "enable_dsa_indexer without use_sparse_flash_attn, which attends to all tokens");
  }
  if (std::cmp_not_equal(letters.size(), layers) && letters.size() > 1) {
    not_understood(draft, "index_topk_pattern", fmt::format("index_topk_pattern {}", letters));
    return;
  }
  put(draft.model, "layer_pattern", "\"" + letters + "\"");
  put(draft.model, "sparse_attention.num_heads", heads);
  put(draft.model, "sparse_attention.head_size", size);
  put(draft.model, "sparse_attention.topk", topk);
}

}  // namespace pipesim
