#include "models/transformer.h"

#include <fmt/format.h>

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

}  // namespace pipesim
