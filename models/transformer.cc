#include "models/transformer.h"

#include <fmt/format.h>

#include "models/layer_parameters.h"

namespace pipesim {
namespace {

std::string fault_of_experts(const Transformer& model) {
  const Experts& experts = *model.experts;
  if (experts.num_experts < 1 || experts.ffn_hidden_size < 1) {
    return "experts need num_experts and ffn_hidden_size";
  }
  if (experts.experts_per_token < 1 || experts.experts_per_token > experts.num_experts) {
    return fmt::format("a token cannot pass {} of {} experts", experts.experts_per_token,
                       experts.num_experts);
  }
  if (experts.first_dense_layers > model.num_layers) {
    return fmt::format("{} first dense layers, but only {} layers", experts.first_dense_layers,
                       model.num_layers);
  }
  return "";
}

double unused_parameters(const Transformer& model, LayerKind kind) {
  const bool moe = kind == LayerKind::kMoe ||
                   (kind == LayerKind::kMtp && mtp_layer_kind(model) == LayerKind::kMoe);
  if (!moe) return 0;
  const Experts& experts = *model.experts;
  const double one = layer_parameters(model, kind, {}).expert / experts.num_experts;
  return one * (experts.num_experts - experts.experts_per_token);
}

}  // namespace

std::string fault_of(const Transformer& model) {
  if (model.num_layers < 1 || model.hidden_size < 1 || model.num_attention_heads < 1 ||
      model.vocab_size < 1 || model.ffn_hidden_size < 1) {
    return "a model needs layers, hidden size, attention heads, an MLP and a vocabulary";
  }
  if (!model.latent && (model.num_query_groups < 1 || model.kv_channels < 1)) {
    return "attention needs num_query_groups and kv_channels";
  }
  if (!model.latent && model.num_attention_heads % model.num_query_groups != 0) {
    return fmt::format("{} attention heads do not divide into {} query groups",
                       model.num_attention_heads, model.num_query_groups);
  }
  if (model.positions == Positions::kLearned && model.max_position_embeddings < 1) {
    return "learned positions need max_position_embeddings";
  }
  return model.experts ? fault_of_experts(model) : "";
}

LayerKind layer_kind(const Transformer& model, int layer) {
  const bool moe = model.experts && layer >= model.experts->first_dense_layers;
  return moe ? LayerKind::kMoe : LayerKind::kDense;
}

LayerKind mtp_layer_kind(const Transformer& model) {
  return layer_kind(model, model.num_layers - 1);
}

int moe_layers(const Transformer& model) {
  return model.experts ? model.num_layers - model.experts->first_dense_layers : 0;
}

int qk_head_size(const Transformer& model) {
  return model.latent ? model.latent->nope_head_size + model.latent->rope_head_size
                      : model.kv_channels;
}

int v_head_size(const Transformer& model) {
  return model.latent ? model.latent->v_head_size : model.kv_channels;
}

double parameters(const Transformer& model, LayerKind kind) {
  const LayerParameters sum = layer_parameters(model, kind, {});
  return sum.dense + sum.expert;
}

double activated_parameters(const Transformer& model, LayerKind kind) {
  return parameters(model, kind) - unused_parameters(model, kind);
}

double total_parameters(const Transformer& model) {
  const double moe = moe_layers(model);
  const double dense = model.num_layers - moe;
  const double tied = model.tied_embeddings ? 1.0 * model.vocab_size * model.hidden_size : 0;
  return (dense > 0 ? dense * parameters(model, LayerKind::kDense) : 0.0) +
         (moe > 0 ? moe * parameters(model, LayerKind::kMoe) : 0.0) +
         parameters(model, LayerKind::kEmbedding) + parameters(model, LayerKind::kOutput) - tied;
}

double total_activated_parameters(const Transformer& model) {
  const double moe = moe_layers(model);
  return total_parameters(model) -
         (moe > 0 ? moe * unused_parameters(model, LayerKind::kMoe) : 0.0);
}

double mtp_parameters(const Transformer& model) {
  return model.mtp_layers > 0 ? model.mtp_layers * parameters(model, LayerKind::kMtp) : 0.0;
}

}  // namespace pipesim
