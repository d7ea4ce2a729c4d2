#include "sim/runtime/stage_math.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/runtime/blas.h"

namespace pipesim::runtime {
namespace {

// The same numbers wherever they are made.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// Token `at` of a unit; the target of a token is the one after it.
int token(std::uint32_t unit, std::size_t at, int vocabulary) {
  return static_cast<int>(scrambled(1000003ULL * unit + at) %
                          static_cast<std::uint64_t>(vocabulary));
}

std::vector<int> tokens_of(const SmallModel& model, std::uint32_t unit, std::size_t shift) {
  std::vector<int> tokens;
  for (std::size_t i = 0; i < model.tokens(); ++i) {
    tokens.push_back(token(unit, i + shift, model.shape.vocab_size));
  }
  return tokens;
}

int whole(std::size_t value) { return static_cast<int>(value); }

// y (rows x out) = x (rows x in) * w (in x out).
void linear(std::span<const float> x, std::span<const float> w, std::size_t in,
            std::span<float> y) {
  const std::size_t rows = x.size() / in;
  const std::size_t out = w.size() / in;
  multiply({whole(rows), whole(out), whole(in)}, {x.data(), whole(in)}, {w.data(), whole(out)},
           y.data(), whole(out));
}
// dx = dy * w turned.
void linear_input(std::span<const float> dy, std::span<const float> w, std::size_t in,
                  std::span<float> dx) {
  const std::size_t out = w.size() / in;
  multiply({whole(dy.size() / out), whole(in), whole(out)}, {dy.data(), whole(out)},
           {w.data(), whole(out), Turned::kYes}, dx.data(), whole(in));
}
// dw += x turned * dy.
void linear_weight(std::span<const float> x, std::span<const float> dy, std::size_t in,
                   std::span<float> dw) {
  const std::size_t out = dw.size() / in;
  multiply({whole(in), whole(out), whole(x.size() / in), 1, 1}, {x.data(), whole(in), Turned::kYes},
           {dy.data(), whole(out)}, dw.data(), whole(out));
}

}  // namespace

std::string why_not_small(const Transformer& model) {
  if (model.traced || model.experts || model.latent || model.mtp_layers > 0) {
    return "it computes dense layers with plain attention";
  }
  if (model.gated_mlp || has_qkv_bias(model) || has_mlp_bias(model) ||
      model.qk_norm != QkNorm::kNone || model.post_norms || !model.layer_pattern.empty() ||
      model.q_rank > 0 || model.encoder || model.cross) {
    return "it computes MLPs that are not gated, without biases, norms of queries or norms after";
  }
  if (model.residual_streams > 1 || model.residual_block > 0) return "it computes one residual";
  if (model.norm != Norm::kRmsNorm) return "it computes RMS norms";
  if (model.positions != Positions::kLearned) return "it computes learned positions";
  if (model.tied_embeddings) return "its embedding and output have weights of their own";
  if (model.num_query_groups != model.num_attention_heads || model.v_channels > 0 ||
      model.kv_channels * model.num_attention_heads != model.hidden_size) {
    return "its heads have keys and values of their own, and hidden_size / heads each";
  }
  return "";
}

StageMath::StageMath(const SmallModel& model, const StageLayers& layers, Ledger& ledger)
    : model_(model),
      layers_(layers),
      hidden_(static_cast<std::size_t>(model.shape.hidden_size)),
      inner_(static_cast<std::size_t>(model.shape.ffn_hidden_size)),
      tokens_(model.tokens()),
      vocabulary_(static_cast<std::size_t>(model.shape.vocab_size)),
      ledger_(ledger) {
  const float out = 1 / std::sqrt(static_cast<float>(hidden_));
  const float down = 1 / std::sqrt(static_cast<float>(inner_));
  if (layers.embedding) {
    embedding_ = place(vocabulary_ * hidden_, -1, 0, 1);
    positions_ = place(static_cast<std::size_t>(model.length) * hidden_, -1, 1, 1);
  }
  for (int layer = layers.first; layer < layers.first + layers.layers; ++layer) {
    at_.push_back({place(hidden_, layer, 0, 0), place(3 * hidden_ * hidden_, layer, 1, out),
                   place(hidden_ * hidden_, layer, 2, out), place(hidden_, layer, 3, 0),
                   place(hidden_ * inner_, layer, 4, out),
                   place(inner_ * hidden_, layer, 5, down)});
  }
  if (layers.output) {
    final_norm_ = place(hidden_, -2, 0, 0);
    logits_ = place(hidden_ * vocabulary_, -2, 1, out);
  }
  gradients_.assign(weights_.size(), 0);
}

// Uniform in +-scale; with scale 0, of a norm, 1.
std::size_t StageMath::place(std::size_t size, int layer, int part, float scale) {
  const std::size_t at = weights_.size();
  weights_.resize(at + size, 1);
  if (scale == 0) return at;
  const std::uint64_t seed = scrambled(static_cast<std::uint64_t>(layer + 7) * 16 + part);
  for (std::size_t i = 0; i < size; ++i) {
    const auto bits = static_cast<double>(scrambled(seed + i) >> 11U);
    weights_[at + i] = scale * static_cast<float>(std::ldexp(bits, -52) - 1);
  }
  return at;
}

AttentionSize StageMath::attention_size() const {
  return {model_.batch, model_.length, model_.shape.num_attention_heads, model_.shape.kv_channels};
}

std::vector<float> StageMath::embed(std::uint32_t unit) {
  std::vector<float> x(tokens_ * hidden_);
  const auto ids = tokens_of(model_, unit, 0);
  for (std::size_t i = 0; i < tokens_; ++i) {
    add(weight(embedding_ + ids[i] * hidden_, hidden_),
        weight(positions_ + i % model_.length * hidden_, hidden_),
        std::span(x).subspan(i * hidden_, hidden_));
  }
  return x;
}

void StageMath::embed_backward(std::uint32_t unit, std::span<const float> dx) {
  const auto ids = tokens_of(model_, unit, 0);
  for (std::size_t i = 0; i < tokens_; ++i) {
    const auto row = dx.subspan(i * hidden_, hidden_);
    for (const std::size_t at :
         {embedding_ + ids[i] * hidden_, positions_ + i % model_.length * hidden_}) {
      const auto into = gradient(at, hidden_);
      add(into, row, into);
    }
  }
}

std::vector<float> StageMath::layer_forward(const LayerWeights& at, LayerKept& kept,
                                            std::span<const float> x) {
  const std::size_t h = hidden_;
  ledger_.keep(kept.x, x.size());
  std::ranges::copy(x, kept.x.begin());
  rms_norm(x, weight(at.norm1, h), ledger_.keep(kept.n1, x.size()));
  linear(kept.n1, weight(at.qkv, 3 * h * h), h, ledger_.keep(kept.qkv, 3 * x.size()));
  ledger_.keep(kept.lse, tokens_ * model_.shape.num_attention_heads, Ledger::kFp32);
  attention(attention_size(), kept.qkv, ledger_.keep(kept.a, x.size()), kept.lse);
  linear(kept.a, weight(at.out, h * h), h, ledger_.keep(kept.x1, x.size()));
  add(kept.x1, x, kept.x1);
  rms_norm(kept.x1, weight(at.norm2, h), ledger_.keep(kept.n2, x.size()));
  linear(kept.n2, weight(at.first, h * inner_), h, ledger_.keep(kept.u, tokens_ * inner_));
  gelu(kept.u, ledger_.keep(kept.g, kept.u.size()));
  std::vector<float> y(x.size());
  linear(kept.g, weight(at.second, inner_ * h), inner_, y);
  add(y, kept.x1, y);
  return y;
}

std::vector<float> StageMath::layer_backward(const LayerWeights& at, LayerKept& kept,
                                             std::span<const float> dy) {
  const std::size_t h = hidden_;
  ledger_.keep(kept.dy, dy.size());
  std::ranges::copy(dy, kept.dy.begin());
  std::vector<float> wide(kept.u.size());
  linear_input(dy, weight(at.second, inner_ * h), inner_, wide);
  gelu_backward(kept.u, wide, wide);
  ledger_.drop(kept.u);
  std::ranges::copy(wide, ledger_.keep(kept.du, wide.size()).begin());
  std::vector<float> dn(dy.size());
  linear_input(kept.du, weight(at.first, h * inner_), h, dn);
  std::vector<float> dx(dy.size());
  rms_norm_backward(kept.x1, weight(at.norm2, h), dn, dx, gradient(at.norm2, h));
  ledger_.drop(kept.x1);
  add(dx, dy, ledger_.keep(kept.da, dy.size()));
  linear_input(kept.da, weight(at.out, h * h), h, dn);
  std::vector<float> dqkv(kept.qkv.size());
  attention_backward(attention_size(), kept.qkv, kept.a, kept.lse, dn, dqkv);
  ledger_.drop(kept.qkv);
  ledger_.drop(kept.lse, Ledger::kFp32);
  std::ranges::copy(dqkv, ledger_.keep(kept.dqkv, dqkv.size()).begin());
  linear_input(kept.dqkv, weight(at.qkv, 3 * h * h), h, dn);
  rms_norm_backward(kept.x, weight(at.norm1, h), dn, dx, gradient(at.norm1, h));
  ledger_.drop(kept.x);
  add(dx, kept.da, dx);
  return dx;
}

void StageMath::layer_weight_gradients(const LayerWeights& at, LayerKept& kept) {
  const std::size_t h = hidden_;
  linear_weight(kept.g, kept.dy, inner_, gradient(at.second, inner_ * h));
  linear_weight(kept.n2, kept.du, h, gradient(at.first, h * inner_));
  linear_weight(kept.a, kept.da, h, gradient(at.out, h * h));
  linear_weight(kept.n1, kept.dqkv, h, gradient(at.qkv, 3 * h * h));
  for (auto* tensor :
       {&kept.g, &kept.dy, &kept.n2, &kept.du, &kept.a, &kept.da, &kept.n1, &kept.dqkv}) {
    ledger_.drop(*tensor);
  }
}

void StageMath::output_forward(std::uint32_t unit, UnitKept& kept, std::span<const float> x) {
  ledger_.keep(kept.x, x.size());
  std::ranges::copy(x, kept.x.begin());
  rms_norm(x, weight(final_norm_, hidden_), ledger_.keep(kept.n, x.size()));
  linear(kept.n, weight(logits_, hidden_ * vocabulary_), hidden_,
         ledger_.keep(kept.softmax, tokens_ * vocabulary_, Ledger::kFp32));
  loss_ += cross_entropy(kept.softmax, tokens_of(model_, unit, 1));
}

std::vector<float> StageMath::output_backward(std::uint32_t unit, UnitKept& kept) {
  std::vector<float> dlogits(kept.softmax.size());
  cross_entropy_backward(kept.softmax, tokens_of(model_, unit, 1), dlogits);
  ledger_.drop(kept.softmax, Ledger::kFp32);
  std::ranges::copy(dlogits, ledger_.keep(kept.dlogits, dlogits.size()).begin());
  std::vector<float> dn(tokens_ * hidden_);
  linear_input(kept.dlogits, weight(logits_, hidden_ * vocabulary_), hidden_, dn);
  std::vector<float> dx(dn.size());
  rms_norm_backward(kept.x, weight(final_norm_, hidden_), dn, dx, gradient(final_norm_, hidden_));
  ledger_.drop(kept.x);
  return dx;
}

std::vector<float> StageMath::forward(std::uint32_t unit, std::span<const float> input) {
  UnitKept& kept = kept_[unit];
  kept.layers.resize(at_.size());
  std::vector<float> x =
      layers_.embedding ? embed(unit) : std::vector<float>(input.begin(), input.end());
  for (std::size_t i = 0; i < at_.size(); ++i) x = layer_forward(at_[i], kept.layers[i], x);
  if (!layers_.output) return x;
  output_forward(unit, kept, x);
  return {};
}

std::vector<float> StageMath::backward(std::uint32_t unit, std::span<const float> gradient) {
  UnitKept& kept = kept_.at(unit);
  std::vector<float> dx = layers_.output ? output_backward(unit, kept)
                                         : std::vector<float>(gradient.begin(), gradient.end());
  for (std::size_t i = at_.size(); i-- > 0;) dx = layer_backward(at_[i], kept.layers[i], dx);
  if (!layers_.embedding) return dx;
  embed_backward(unit, dx);
  return {};
}

void StageMath::weight_gradients(std::uint32_t unit) {
  UnitKept& kept = kept_.at(unit);
  if (layers_.output) {
    linear_weight(kept.n, kept.dlogits, hidden_, gradient(logits_, hidden_ * vocabulary_));
    ledger_.drop(kept.n);
    ledger_.drop(kept.dlogits);
  }
  for (std::size_t i = at_.size(); i-- > 0;) layer_weight_gradients(at_[i], kept.layers[i]);
  kept_.erase(unit);
}

}  // namespace pipesim::runtime
