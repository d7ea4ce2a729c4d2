// Shapes of the papers whose formulas the tests compare with.
#pragma once

#include "models/layer_context.h"
#include "models/layer_memory.h"
#include "models/transformer.h"

namespace pipesim::testing {

inline LayerContext sequence(int length, int tensor = 1) {
  LayerContext context;
  context.seq_length = length;
  context.tensor = tensor;
  return context;
}

// Bytes that a layer keeps of a microbatch for its backward.
inline double kept(const Transformer& model, LayerKind kind, const LayerContext& context) {
  return layer_memory(model, kind, context).activation.value();
}

// GPT as Megatron-LM trains it: MLP of 4h, biases, learned positions, tied embeddings.
inline Transformer gpt(int layers, int hidden, int heads, int vocabulary = 51200) {
  Transformer model;
  model.name = "gpt";
  model.num_layers = layers;
  model.hidden_size = hidden;
  model.num_attention_heads = heads;
  model.num_query_groups = heads;
  model.kv_channels = hidden / heads;
  model.ffn_hidden_size = 4 * hidden;
  model.vocab_size = vocabulary;
  model.max_position_embeddings = 2048;
  model.tied_embeddings = true;
  model.linear_bias = true;
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  return model;
}

inline Transformer llama3_70b() {
  Transformer model;
  model.name = "llama3-70b";
  model.num_layers = 80;
  model.hidden_size = 8192;
  model.num_attention_heads = 64;
  model.num_query_groups = 8;
  model.kv_channels = 128;
  model.ffn_hidden_size = 28672;
  model.vocab_size = 128256;
  model.gated_mlp = true;
  return model;
}

inline Transformer mixtral() {
  Transformer model = llama3_70b();
  model.name = "mixtral";
  model.num_layers = 32;
  model.hidden_size = 4096;
  model.num_attention_heads = 32;
  model.ffn_hidden_size = 14336;
  model.vocab_size = 32000;
  model.experts = Experts{.num_experts = 8, .experts_per_token = 2, .ffn_hidden_size = 14336};
  return model;
}

inline Transformer deepseek_v3() {
  Transformer model;
  model.name = "deepseek-v3";
  model.num_layers = 61;
  model.hidden_size = 7168;
  model.num_attention_heads = 128;
  model.ffn_hidden_size = 18432;
  model.vocab_size = 129280;
  model.mtp_layers = 1;
  model.gated_mlp = true;
  model.experts = Experts{.num_experts = 256,
                          .experts_per_token = 8,
                          .shared_experts = 1,
                          .ffn_hidden_size = 2048,
                          .first_dense_layers = 3,
                          .router_bias = true};
  model.latent = LatentAttention{.q_rank = 1536,
                                 .kv_rank = 512,
                                 .nope_head_size = 128,
                                 .rope_head_size = 64,
                                 .v_head_size = 128};
  return model;
}

// The setting of the formulas in print: scores kept, dropout everywhere.
inline LayerContext plain(int batch, int seq, int tensor = 1, bool sequence = false) {
  LayerContext context;
  context.micro_batch_size = batch;
  context.seq_length = seq;
  context.tensor = tensor;
  context.sequence_parallel = sequence;
  context.flash_attention = false;
  context.causal = false;
  context.dropout = true;
  return context;
}

}  // namespace pipesim::testing
