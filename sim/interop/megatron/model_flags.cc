#include "sim/interop/megatron/model_flags.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace pipesim {
namespace {

class ModelFlags {
 public:
  ModelFlags(const Transformer& model, int tensor, int seq_length)
      : model_(model), tensor_(tensor), seq_length_(seq_length) {}

  std::vector<std::string> all() {
    value("num-layers", model_.num_layers);
    value("hidden-size", model_.hidden_size);
    value("ffn-hidden-size", model_.ffn_hidden_size);
    attention();
    vocabulary();
    if (model_.gated_mlp) flag("swiglu");
    if (model_.norm == Norm::kRmsNorm) flag("normalization RMSNorm");
    positions();
    if (!model_.tied_embeddings) flag("untie-embeddings-and-output-weights");
    if (!model_.linear_bias) flag("disable-bias-linear");
    if (model_.mtp_layers > 0) value("mtp-num-layers", model_.mtp_layers);
    if (model_.experts) experts(*model_.experts);
    return std::move(flags_);
  }

 private:
  void flag(std::string_view text) { flags_.push_back(fmt::format("--{}", text)); }
  void value(std::string_view name, int number) { flag(fmt::format("{} {}", name, number)); }

  void positions() {
    switch (model_.positions) {
      case Positions::kRotary:
        flag("position-embedding-type rope");
        if (model_.rotary_percent < 1) {
          flag(fmt::format("rotary-percent {}", model_.rotary_percent));
        }
        break;
      case Positions::kNone:
        flag("position-embedding-type none");
        break;
      case Positions::kLearned:
        break;
    }
    value("max-position-embeddings", std::max(model_.max_position_embeddings, seq_length_));
  }

  // The last of so many layers sees all tokens.
  void windows() {
    if (model_.attention_window == 0) return;
    flag(fmt::format("window-size {},0", model_.attention_window - 1));
    if (model_.layer_pattern.size() > 1) {
      value("window-attn-skip-freq", static_cast<int>(model_.layer_pattern.size()));
    }
  }

  void attention() {
    value("num-attention-heads", model_.num_attention_heads);
    if (model_.qkv_bias) flag("add-qkv-bias");
    if (model_.qk_norm != QkNorm::kNone) flag("qk-layernorm");
    if (model_.sinks) flag("softmax-type learnable");
    if (model_.output_gate) flag("attention-output-gate");
    windows();
    if (const auto& latent = model_.latent) {
      flag("multi-latent-attention");
      if (latent->q_rank > 0) value("q-lora-rank", latent->q_rank);
      value("kv-lora-rank", latent->kv_rank);
      value("qk-head-dim", latent->nope_head_size);
      value("qk-pos-emb-head-dim", latent->rope_head_size);
      value("v-head-dim", latent->v_head_size);
      return;
    }
    if (model_.num_query_groups != model_.num_attention_heads) {
      flag("group-query-attention");
      value("num-query-groups", model_.num_query_groups);
    }
    if (model_.kv_channels * model_.num_attention_heads != model_.hidden_size) {
      value("kv-channels", model_.kv_channels);
    }
  }

  // With the largest step of the usual ones at which nothing is padded.
  void vocabulary() {
    constexpr int kUsual = 128;
    int step = kUsual;
    while (step > 1 && model_.vocab_size % (step * tensor_) != 0) step /= 2;
    value("vocab-size", model_.vocab_size);
    if (step < kUsual) value("make-vocab-size-divisible-by", step);
  }

  void experts(const Experts& experts) {
    value("num-experts", experts.num_experts);
    value("moe-router-topk", experts.experts_per_token);
    value("moe-ffn-hidden-size", experts.ffn_hidden_size);
    if (experts.shared_experts > 0) {
      value("moe-shared-expert-intermediate-size", static_cast<int>(shared_width(experts)));
    }
    if (experts.router_bias) flag("moe-router-enable-expert-bias");
    if (experts.groups > 1) {
      value("moe-router-num-groups", experts.groups);
      value("moe-router-group-topk", experts.groups_per_token);
    }
    if (experts.every > 1) {
      std::string layers;
      for (int layer = 0; layer < model_.num_layers; ++layer) {
        const bool moe = feed_of(layer_kind(model_, layer)) == Feed::kExperts;
        layers += fmt::format("{}{}", layer > 0 ? "," : "", moe ? 1 : 0);
      }
      flag(fmt::format("moe-layer-freq \"([{}])\"", layers));
    } else if (const int dense = experts.first_dense_layers; dense > 0) {
      flag(fmt::format("moe-layer-freq \"([0]*{}+[1]*{})\"", dense, model_.num_layers - dense));
    }
  }

  const Transformer& model_;
  int tensor_;
  int seq_length_;
  std::vector<std::string> flags_;
};

}  // namespace

std::string why_no_flags(const Transformer& model) {
  const std::string& pattern = model.layer_pattern;
  if (model.linear || pattern.find('C') != std::string::npos) {
    return "its flags have no layers with linear attention or shared keys";
  }
  if (model.chunked_window) return "its flags have no attention in chunks";
  if (model.window_heads || model.sparse || model.v_channels > 0 || model.values_are_keys) {
    return "its flags have no sparse attention, and heads of one size in all layers";
  }
  const bool skips = pattern.find('G') == pattern.size() - 1 || pattern == "W";
  if (!pattern.empty() && !skips) {
    return fmt::format("its windows skip the last of so many layers, not as in {}", pattern);
  }
  return model.encoder ? "its pretrain_gpt.py has no encoder" : "";
}

std::vector<std::string> model_flags(const Transformer& model, int tensor, int seq_length) {
  return ModelFlags(model, tensor, seq_length).all();
}

}  // namespace pipesim
