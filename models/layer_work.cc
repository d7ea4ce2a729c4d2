#include "models/layer_work.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kElement = 2;  // bytes of bf16

std::int64_t whole(double value) { return std::max<std::int64_t>(1, std::llround(value)); }

// Builds the work of one pass, part by part; a part knows what it does in each pass.
class Builder {
 public:
  Builder(const Transformer& model, PassKind pass, const LayerContext& context)
      : model_(model),
        context_(context),
        pass_(pass == PassKind::kR ? PassKind::kF : pass),
        hidden_(model.hidden_size),
        tokens_(layer_tokens(context)),
        divided_(divided_tokens(context)),
        ranks_(context.tensor) {}

  void layer(LayerKind kind) {
    attention_block();
    if (kind == LayerKind::kMoe) {
      moe_block();
    } else {
      mlp_block();
    }
  }
  void embedding();
  void output();
  void mtp_projection();
  [[nodiscard]] const Work& work() const { return work_; }

 private:
  struct Linear {
    double tokens = 0;
    double inputs = 0;
    double outputs = 0;
    bool bias = false;
    bool bf16 = false;  // whatever the precision of the other linear layers
    double batch = 1;
  };
  void linear(const Linear& of);
  void collective(CollectiveKind kind, Group group, double bytes);
  // Bytes moved and kernels launched in F, or in B.
  void stream(PassKind pass, double bytes, int kernels);
  void norm(double tokens, double width);
  void before_divided(double width);  // the way into column-divided matrices
  void after_divided();               // the way out of row-divided ones
  void residual();
  void attention_block();
  void latent_projections();
  void plain_projections();
  void core();
  void fused_core(bool backward);
  void plain_core(bool backward);
  void exchange_keys();
  void mlp_block();
  void mlp(double tokens, double ffn, double ranks, double batch);
  void moe_block();
  void dispatch();

  const Transformer& model_;
  const LayerContext& context_;
  const PassKind pass_;
  const double hidden_;
  const double tokens_;
  const double divided_;
  const double ranks_;
  Work work_;
};

void Builder::linear(const Linear& of) {
  const std::int64_t m = whole(of.tokens);
  const std::int64_t n = whole(of.outputs);
  const std::int64_t k = whole(of.inputs);
  Matmul matmul{m, n, k, whole(of.batch), of.bf16 ? Precision::kBf16 : context_.precision};
  if (pass_ == PassKind::kB) matmul = {m, k, n, matmul.batch, matmul.precision};
  if (pass_ == PassKind::kW) matmul = {k, n, m, matmul.batch, matmul.precision};
  work_.matmuls.push_back(matmul);
  const double rows = of.tokens * of.batch;
  if (matmul.precision == Precision::kFp8) {
    // The input, or the gradient, is read and written in fp8 as it is and transposed.
    stream(PassKind::kF, rows * of.inputs * (kElement + 2), 1);
    stream(PassKind::kB, rows * of.outputs * (kElement + 2), 1);
  }
  if (of.bias) stream(PassKind::kW, rows * of.outputs * kElement, 1);
}

void Builder::collective(CollectiveKind kind, Group group, double bytes) {
  work_.collectives.push_back({kind, group, Bytes(bytes)});
}

void Builder::stream(PassKind pass, double bytes, int kernels) {
  if (pass != pass_) return;
  work_.moved += Bytes(bytes);
  work_.kernels += kernels;
}

void Builder::norm(double tokens, double width) {
  const double one = tokens * width * kElement;
  stream(PassKind::kF, 2 * one, 1);  // in, out
  stream(PassKind::kB, 3 * one, 1);  // gradient, input, gradient
}

void Builder::before_divided(double width) {
  if (context_.tensor == 1) return;
  const double bytes = tokens_ * width * kElement;
  if (!context_.sequence_parallel) {
    if (pass_ == PassKind::kB) collective(CollectiveKind::kAllReduce, Group::kTensor, bytes);
    return;
  }
  const bool gather = pass_ != PassKind::kB;
  collective(gather ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter, Group::kTensor,
             bytes);
}

void Builder::after_divided() {
  if (context_.tensor == 1 || pass_ == PassKind::kW) return;
  const double bytes = tokens_ * hidden_ * kElement;
  const bool forward = pass_ == PassKind::kF;
  if (!context_.sequence_parallel) {
    if (forward) collective(CollectiveKind::kAllReduce, Group::kTensor, bytes);
    return;
  }
  collective(forward ? CollectiveKind::kReduceScatter : CollectiveKind::kAllGather, Group::kTensor,
             bytes);
}

void Builder::residual() {
  const double one = divided_ * hidden_ * kElement;
  const double mask = context_.dropout ? one / kElement : 0;
  stream(PassKind::kF, 3 * one + mask, 1);  // output, residual, sum
  stream(PassKind::kB, 3 * one, 1);         // both gradients, their sum
  if (context_.dropout) stream(PassKind::kB, 2 * one + mask, 1);
  if (model_.post_norms) norm(divided_, hidden_);
}

void Builder::attention_block() {
  norm(divided_, hidden_);
  if (model_.latent) {
    latent_projections();
  } else {
    plain_projections();
  }
  exchange_keys();
  core();
  linear({.tokens = tokens_,
          .inputs = model_.num_attention_heads * v_head_size(model_) / ranks_,
          .outputs = hidden_,
          .bias = model_.linear_bias});
  after_divided();
  residual();
}

void Builder::plain_projections() {
  const double size = model_.kv_channels;
  const double heads = model_.num_attention_heads;
  const double groups = model_.num_query_groups;
  before_divided(hidden_);
  linear({.tokens = tokens_,
          .inputs = hidden_,
          .outputs = (heads + 2 * groups) * size / ranks_,
          .bias = model_.linear_bias || model_.qkv_bias});
  const double both = tokens_ * (heads + groups) * size / ranks_ * kElement;
  if (model_.positions == Positions::kRotary) {
    stream(PassKind::kF, 2 * both, 2);
    stream(PassKind::kB, 2 * both, 2);
  }
  if (model_.qk_norm) {
    stream(PassKind::kF, 2 * both, 2);
    stream(PassKind::kB, 3 * both, 2);
  }
}

void Builder::latent_projections() {
  const LatentAttention& latent = *model_.latent;
  const double heads = model_.num_attention_heads / ranks_;
  const double qk = qk_head_size(model_);
  const double compressed = latent.kv_rank + latent.rope_head_size;
  if (latent.q_rank > 0) {
    linear({.tokens = divided_, .inputs = hidden_, .outputs = 1.0 * latent.q_rank});
    norm(divided_, latent.q_rank);
  }
  linear({.tokens = divided_, .inputs = hidden_, .outputs = compressed});
  norm(divided_, latent.kv_rank);
  before_divided(compressed + (latent.q_rank > 0 ? latent.q_rank : hidden_));
  linear({.tokens = tokens_,
          .inputs = latent.q_rank > 0 ? latent.q_rank : hidden_,
          .outputs = heads * qk,
          .bias = model_.linear_bias});
  linear({.tokens = tokens_,
          .inputs = 1.0 * latent.kv_rank,
          .outputs = heads * (latent.nope_head_size + latent.v_head_size),
          .bias = model_.linear_bias});
  // Positions are turned, and the parts of each query and key put together.
  const double both = 2 * tokens_ * heads * qk * kElement;
  stream(PassKind::kF, 2 * both, 3);
  stream(PassKind::kB, 2 * both, 3);
}

void Builder::exchange_keys() {
  if (context_.context == 1 || pass_ == PassKind::kW) return;
  const double groups = model_.latent ? model_.num_attention_heads : model_.num_query_groups;
  const double bytes = tokens_ * context_.context * groups / ranks_ *
                       (qk_head_size(model_) + v_head_size(model_)) * kElement;
  collective(CollectiveKind::kAllGather, Group::kContext, bytes);
  if (pass_ == PassKind::kB) collective(CollectiveKind::kReduceScatter, Group::kContext, bytes);
}

void Builder::core() {
  if (pass_ == PassKind::kW) return;
  const bool backward = pass_ == PassKind::kB;
  // A flash kernel rebuilds its scores anyway; with selective recompute its whole forward is run.
  if (backward && context_.recompute == RecomputeGranularity::kSelective) {
    context_.flash_attention ? fused_core(false) : plain_core(false);
  }
  context_.flash_attention ? fused_core(backward) : plain_core(backward);
}

void Builder::fused_core(bool backward) {
  const double heads = model_.num_attention_heads / ranks_;
  const double qk = qk_head_size(model_);
  const double v = v_head_size(model_);
  const double pairs = tokens_ * context_.seq_length * (context_.causal ? 0.5 : 1.0);
  const double depth = backward ? 3 * qk + 2 * v : qk + v;
  const double groups =
      (model_.latent ? model_.num_attention_heads : model_.num_query_groups) / ranks_;
  const double keys = tokens_ * context_.context * groups * (qk + v);
  const double queries = tokens_ * heads * (qk + v);  // and outputs
  work_.attention.push_back({Flops(2 * pairs * heads * depth),
                             Bytes((backward ? 2 : 1) * (keys + queries) * kElement),
                             qk_head_size(model_), backward});
}

void Builder::plain_core(bool backward) {
  const std::int64_t queries = whole(1.0 * context_.seq_length / context_.context);
  const std::int64_t keys = context_.seq_length;
  const std::int64_t qk = qk_head_size(model_);
  const std::int64_t v = v_head_size(model_);
  const double heads = context_.micro_batch_size * model_.num_attention_heads / ranks_;
  const std::int64_t batch = whole(heads);
  const double scores = heads * static_cast<double>(queries) * static_cast<double>(keys);
  const Precision bf16 = Precision::kBf16;
  if (backward) {
    work_.matmuls.push_back({queries, keys, v, batch, bf16});  // of the probabilities
    work_.matmuls.push_back({keys, v, queries, batch, bf16});  // of the values
    work_.matmuls.push_back({queries, qk, keys, batch, bf16});
    work_.matmuls.push_back({keys, qk, queries, batch, bf16});
  } else {
    work_.matmuls.push_back({queries, keys, qk, batch, bf16});
    work_.matmuls.push_back({queries, v, keys, batch, bf16});
  }
  // Softmax, and dropout with its mask.
  work_.moved += Bytes(scores * kElement * (backward ? 3 : 2));
  if (context_.dropout) work_.moved += Bytes(scores * (2 * kElement + 1));
  work_.kernels += context_.dropout ? 2 : 1;
}

void Builder::mlp_block() {
  norm(divided_, hidden_);
  before_divided(hidden_);
  mlp(tokens_, model_.ffn_hidden_size, ranks_, 1);
  after_divided();
  residual();
}

void Builder::mlp(double tokens, double ffn, double ranks, double batch) {
  const double parts = model_.gated_mlp ? 2 : 1;
  linear({.tokens = tokens,
          .inputs = hidden_,
          .outputs = parts * ffn / ranks,
          .bias = model_.linear_bias,
          .batch = batch});
  const double one = tokens * batch * ffn / ranks * kElement;
  stream(PassKind::kF, (parts + 1) * one, 1);
  stream(PassKind::kB, (2 * parts + 1) * one, 1);
  linear({.tokens = tokens,
          .inputs = ffn / ranks,
          .outputs = hidden_,
          .bias = model_.linear_bias,
          .batch = batch});
}

void Builder::moe_block() {
  const Experts& experts = *model_.experts;
  norm(divided_, hidden_);
  linear(
      {.tokens = divided_, .inputs = hidden_, .outputs = 1.0 * experts.num_experts, .bf16 = true});
  dispatch();
  const double rows = expert_rows(model_, context_);
  const double held = std::min(1.0 * experts.num_experts / context_.expert, std::ceil(rows));
  mlp(rows / held, experts.ffn_hidden_size, context_.expert_tensor, held);
  if (experts.shared_experts > 0) {
    before_divided(hidden_);
    mlp(tokens_, 1.0 * experts.shared_experts * experts.ffn_hidden_size, ranks_, 1);
    after_divided();
    const double one = divided_ * hidden_ * kElement;
    stream(PassKind::kF, 3 * one, 1);
    stream(PassKind::kB, 3 * one, 1);
  }
  residual();
}

void Builder::dispatch() {
  if (pass_ == PassKind::kW) return;
  const Experts& experts = *model_.experts;
  const double one = divided_ * hidden_ * kElement;
  const double sent = experts.experts_per_token * one;
  if (context_.expert > 1) {
    collective(CollectiveKind::kAllToAll, Group::kExpert, sent);
    collective(CollectiveKind::kAllToAll, Group::kExpert, sent);
  }
  if (context_.expert_tensor > 1) {
    const double all = sent * context_.expert_tensor;
    collective(CollectiveKind::kAllGather, Group::kTensor, all);
    collective(CollectiveKind::kReduceScatter, Group::kTensor, all);
  }
  // Scores in fp32: softmax, choice, weights.
  stream(pass_, 4 * divided_ * experts.num_experts * 4.0, 3);
  // Rows are copied out, sorted by expert, sorted back, and added up.
  stream(pass_, 2 * (one + sent) + 4 * sent, 4);
}

void Builder::embedding() {
  if (pass_ == PassKind::kW) return;  // the gradient of the rows is made where the others are, in B
  const double all = tokens_ * hidden_;
  const double mask = context_.dropout ? divided_ * hidden_ * (2 * kElement + 1) : 0;
  const bool learned = model_.positions == Positions::kLearned;
  stream(PassKind::kF, all * 2 * kElement, 1);
  stream(PassKind::kB, all * (kElement + 8) / ranks_, 1);  // added to gradients in fp32
  if (learned) stream(PassKind::kF, all * 3 * kElement, 1);
  if (learned) stream(PassKind::kB, all * (kElement + 8), 1);
  if (context_.dropout) stream(pass_, mask, 1);
  if (pass_ == PassKind::kF) {
    after_divided();
  } else if (context_.tensor > 1 && context_.sequence_parallel) {
    collective(CollectiveKind::kAllGather, Group::kTensor, all * kElement);
  }
}

void Builder::output() {
  norm(divided_, hidden_);
  before_divided(hidden_);
  const double columns = std::ceil(model_.vocab_size / ranks_);
  linear({.tokens = tokens_, .inputs = hidden_, .outputs = columns, .bf16 = true});
  // Loss in fp32: cast, maximum, exponentials and their sum, division; backward the gradient in
  // place, and cast.
  stream(PassKind::kF, tokens_ * columns * (6 + 4 + 8 + 8), 5);
  stream(PassKind::kB, tokens_ * columns * (8 + 6), 2);
  if (context_.tensor > 1 && pass_ == PassKind::kF) {
    // The maximum, the target's logit, and the sum.
    for (int i = 0; i < 3; ++i) {
      collective(CollectiveKind::kAllReduce, Group::kTensor, tokens_ * 4);
    }
  }
}

void Builder::mtp_projection() {
  norm(divided_, hidden_);
  norm(divided_, hidden_);
  before_divided(2 * hidden_);
  linear({.tokens = tokens_, .inputs = 2 * hidden_, .outputs = hidden_ / ranks_});
  if (context_.tensor > 1 && pass_ == PassKind::kF) {
    collective(CollectiveKind::kAllGather, Group::kTensor, tokens_ * hidden_ * kElement);
  }
}

}  // namespace

Work layer_work(const Transformer& model, LayerKind kind, PassKind pass,
                const LayerContext& context) {
  if (pass == PassKind::kBW || pass == PassKind::kFB) {
    throw LogicError(fmt::format("no work of one layer for pass {}", to_text(pass)));
  }
  Builder builder(model, pass, context);
  switch (kind) {
    case LayerKind::kEmbedding:
      builder.embedding();
      break;
    case LayerKind::kOutput:
      builder.output();
      break;
    case LayerKind::kMtp:
      builder.mtp_projection();
      builder.layer(mtp_layer_kind(model));
      break;
    case LayerKind::kDense:
    case LayerKind::kMoe:
      builder.layer(kind);
      break;
  }
  return builder.work();
}

Flops flops(const Work& work) {
  Flops sum;
  for (const Matmul& matmul : work.matmuls) sum += matmul.flops();
  for (const Attention& attention : work.attention) sum += attention.flops;
  return sum;
}

Flops model_flops(const Transformer& model, int seq_length, bool causal) {
  LayerContext context;
  context.seq_length = seq_length;
  context.causal = causal;
  const auto forward = [&](LayerKind kind) {
    return flops(layer_work(model, kind, PassKind::kF, context));
  };
  const int moe = moe_layers(model);
  Flops sum = (1.0 + model.mtp_layers) * forward(LayerKind::kOutput);
  if (moe < model.num_layers) sum += 1.0 * (model.num_layers - moe) * forward(LayerKind::kDense);
  if (moe > 0) sum += 1.0 * moe * forward(LayerKind::kMoe);
  if (model.mtp_layers > 0) sum += 1.0 * model.mtp_layers * forward(LayerKind::kMtp);
  return 3.0 * sum;
}

}  // namespace pipesim
