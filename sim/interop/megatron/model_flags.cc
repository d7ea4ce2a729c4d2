#include "sim/interop/megatron/model_flags.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace pipesim {
namespace {

class ModelFlags {
 public:
  ModelFlags(const Transformer& model, int tensor, int seq_length, MegatronFlags& to)
      : model_(model), tensor_(tensor), seq_length_(seq_length), to_(to) {}

  void add() {
    value("num-layers", model_.num_layers);
    value("hidden-size", model_.hidden_size);
    value("ffn-hidden-size", model_.ffn_hidden_size);
    attention();
    vocabulary();
    if (model_.gated_mlp) flag("swiglu");
    if (model_.norm == Norm::kRmsNorm) flag("normalization RMSNorm");
    positions();
    if (!model_.tied_embeddings) flag("untie-embeddings-and-output-weights");
    biases();
    norms();
    if (model_.mtp_layers > 0) value("mtp-num-layers", model_.mtp_layers);
    if (model_.experts) experts(*model_.experts);
  }

 private:
  void flag(std::string_view text) { to_.flags.push_back(fmt::format("--{}", text)); }
  void value(std::string_view name, int number) { flag(fmt::format("{} {}", name, number)); }

  // One flag has biases of attention and of the MLP.
  void biases() {
    const bool all = model_.linear_bias || (model_.attention_bias && model_.mlp_bias);
    if (!all) flag("disable-bias-linear");
    if (all || (!model_.attention_bias && !model_.mlp_bias)) return;
    if (model_.attention_bias && !model_.qkv_bias) flag("add-qkv-bias");
    to_.left_out.emplace_back(model_.attention_bias ? "the bias of attention's output"
                                                    : "biases of the MLP");
  }

  void norms() {
    if (model_.post_norms) {
      to_.left_out.emplace_back("norms after attention and MLP, for which it has no flag");
    }
    if (model_.norm == Norm::kLayerNormWithoutBias) {
      to_.left_out.emplace_back("norms without a bias: LayerNorm has one");
    }
    switch (model_.qk_norm) {
      case QkNorm::kNone:
        // Latent attention normalizes what it compressed.
        if (model_.latent) flag("qk-layernorm");
        break;
      case QkNorm::kWithoutWeights:
        flag("qk-l2-norm");
        break;
      case QkNorm::kWhole:
        to_.left_out.emplace_back("one norm over all heads: each head has its own");
        [[fallthrough]];
      case QkNorm::kPerHead:
        flag("qk-layernorm");
        break;
    }
  }

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
      case Positions::kRelative:  // of models without flags
        break;
    }
    value("max-position-embeddings", std::max(model_.max_position_embeddings, seq_length_));
  }

  // The last of so many layers sees all tokens.
  void windows() {
    if (model_.attention_window == 0) return;
    flag(fmt::format("window-size {},0", model_.attention_window - 1));
    const auto every = static_cast<int>(model_.layer_pattern.size());
    if (every > 1) value("window-attn-skip-freq", every);
    if (model_.rotary_in_windows_only) value("no-rope-freq", every);
  }

  // The last of so many layers has full attention, or a list says which has.
  void linear_attention(const LinearAttention& linear) {
    flag("experimental-attention-variant gated_delta_net");
    const std::string& pattern = model_.layer_pattern;
    const auto every = static_cast<int>(pattern.size());
    if (every > 1 && pattern.find('G') == pattern.size() - 1) {
      value("linear-attention-freq", every);
    } else {
      std::string layers;
      for (int layer = 0; layer < model_.num_layers; ++layer) {
        const bool full = pattern[static_cast<size_t>(layer) % pattern.size()] == 'G';
        layers += fmt::format("{}{}", layer > 0 ? "," : "", full ? 0 : 1);
      }
      flag(fmt::format("linear-attention-freq \"([{}])\"", layers));
    }
    value("linear-num-value-heads", linear.num_heads);
    value("linear-value-head-dim", linear.head_size);
    value("linear-num-key-heads", linear.key_heads);
    value("linear-key-head-dim", linear.key_head_size);
    value("linear-conv-kernel-dim", linear.conv_kernel);
  }

  void attention() {
    value("num-attention-heads", model_.num_attention_heads);
    if (model_.linear) linear_attention(*model_.linear);
    if (model_.qkv_bias) flag("add-qkv-bias");
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
    if (model_.vocab_size % tensor_ != 0) {
      to_.left_out.push_back(fmt::format("a vocabulary of {}: it pads that to divide it by {}",
                                         model_.vocab_size, tensor_));
    }
    if (step < kUsual) value("make-vocab-size-divisible-by", step);
  }

  // A bias moves a sigmoid, and after a choice of one expert a softmax has no gradient.
  void router(const Experts& experts) {
    if (experts.router_bias) {
      flag("moe-router-enable-expert-bias");
      flag("moe-router-score-function sigmoid");
    } else if (experts.experts_per_token == 1) {
      flag("moe-router-pre-softmax");
    }
  }

  void experts(const Experts& experts) {
    value("num-experts", experts.num_experts);
    value("moe-router-topk", experts.experts_per_token);
    value("moe-ffn-hidden-size", experts.ffn_hidden_size);
    if (experts.shared_experts > 0) {
      value("moe-shared-expert-intermediate-size", static_cast<int>(shared_width(experts)));
    }
    if (experts.latent_size > 0) value("moe-latent-size", experts.latent_size);
    if (experts.capacity_factor > 0) {
      flag(fmt::format("moe-expert-capacity-factor {:g}", experts.capacity_factor));
      flag("moe-pad-expert-input-to-capacity");
    }
    flag("moe-grouped-gemm");
    if (experts.shared_gate) flag("moe-shared-expert-gate");
    router(experts);
    if (experts.groups > 1) {
      value("moe-router-num-groups", experts.groups);
      value("moe-router-group-topk", experts.groups_per_token);
    }
    if (experts.every > 1 || experts.last_dense_layers > 0) {
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
  MegatronFlags& to_;
};

std::string why_no_program(const Transformer& model) {
  if (model.bidirectional) return "its pretrain_gpt.py attends to earlier tokens alone";
  if (model.encoder || model.cross) return "its pretrain_gpt.py has no encoder";
  return model.positions == Positions::kRelative ? "its pretrain_gpt.py has no relative positions"
                                                 : "";
}

std::string why_no_layers(const Transformer& model) {
  if (model.compressed) return "its flags have no compressed attention";
  if (model.residual_streams > 1 || model.residual_block > 0) {
    return "its flags have one residual, in which every layer is added";
  }
  if (model.mlp_sizes[0] > 0) return "its flags have MLPs of one size";
  if (model.q_rank > 0) return "its flags compress no queries without latent attention";
  return model.latent && model.output_gate ? "its latent attention has no output gate" : "";
}

}  // namespace

std::string why_no_flags(const Transformer& model) {
  if (model.traced) return "a traced model runs in its own code";
  if (std::string why = why_no_layers(model); !why.empty()) return why;
  const std::string& pattern = model.layer_pattern;
  if (pattern.find('C') != std::string::npos) return "its flags have no layers with shared keys";
  if (model.linear) {
    const bool delta = model.linear->kind == LinearAttention::Kind::kGatedDelta;
    const bool with_windows = pattern.find_first_not_of("RG") != std::string::npos;
    if (!delta) return "its flags have no linear attention but gated delta nets";
    return with_windows ? "linear attention and windows stand in no model of its flags" : "";
  }
  if (model.chunked_window) return "its flags have no attention in chunks";
  if (model.window_heads || model.sparse || model.v_channels > 0 || model.values_are_keys) {
    return "its flags have no sparse attention, and heads of one size in all layers";
  }
  const bool skips = pattern.find('G') == pattern.size() - 1 || pattern == "W";
  if (!pattern.empty() && !skips) {
    return fmt::format("its windows skip the last of so many layers, not as in {}", pattern);
  }
  return why_no_program(model);
}

void add_model(const Transformer& model, int tensor, int seq_length, MegatronFlags& to) {
  to.model = model.name;
  ModelFlags(model, tensor, seq_length, to).add();
}

}  // namespace pipesim
