#include "models/traced_layer.h"

#include <algorithm>
#include <cmath>

#include "models/tensor_exchange.h"

namespace pipesim {
namespace {

double value_of(const TracedSize& size, const LayerContext& context) {
  return size.factor * std::pow(context.micro_batch_size, size.batch) *
         std::pow(context.seq_length, size.seq);
}

double parts_of_tokens(const LayerContext& context) {
  return context.sequence_parallel ? context.tensor : 1;
}

// Ranks that divide a tensor. Experts' values are as many rows as the GPU's tokens have: those that
// go are replaced by those that come. With expert_tensor ranks, so many times the rows and an inner
// size divided as often.
double ranks_of(const TracedTensor& tensor, const LayerContext& context) {
  const bool tokens = tensor.elements.has_tokens();
  if (tensor.division == TracedDivision::kTensor) return context.tensor;
  if (tensor.division == TracedDivision::kExperts && !tokens) {
    return 1.0 * context.expert * context.expert_tensor;
  }
  return tokens ? parts_of_tokens(context) : 1;
}

double whole_bytes(const TracedTensor& tensor, const LayerContext& context) {
  return value_of(tensor.elements, context) *
         (tensor.bytes > 0 ? tensor.bytes : element_bytes(context));
}
double bytes_of(const TracedTensor& tensor, const LayerContext& context) {
  return whole_bytes(tensor, context) / ranks_of(tensor, context);
}
double bytes_of(const std::vector<TracedTensor>& tensors, const LayerContext& context) {
  double sum = 0;
  for (const TracedTensor& tensor : tensors) sum += bytes_of(tensor, context);
  return sum;
}

// The side that counts tokens.
size_t token_side(const TracedMatmul& matmul) {
  using enum TracedSide;
  for (const TracedSide side : {kM, kK, kBatch, kN}) {
    if (matmul.sides[static_cast<size_t>(side)].has_tokens()) return static_cast<size_t>(side);
  }
  return static_cast<size_t>(kNone);
}

std::array<double, 4> sides_of(const TracedMatmul& matmul, const LayerContext& context) {
  std::array<double, 4> sides{};
  for (size_t i = 0; i < sides.size(); ++i) sides[i] = value_of(matmul.sides[i], context);
  const auto divided = static_cast<size_t>(matmul.divided);
  const bool none = matmul.divided == TracedSide::kNone;
  const size_t tokens = token_side(matmul);
  if (!none) sides[divided] /= matmul.experts ? context.expert_tensor : context.tensor;
  if ((none || matmul.experts) && tokens < sides.size()) sides[tokens] /= parts_of_tokens(context);
  if (matmul.experts) {
    sides[static_cast<size_t>(TracedSide::kBatch)] /= context.expert;
    if (tokens < sides.size()) sides[tokens] *= context.expert * context.expert_tensor;
  }
  return sides;
}

class Builder {
 public:
  Builder(const Transformer& model, const TracedBlock& block, PassKind pass,
          const LayerContext& context)
      : model_(model),
        block_(block),
        context_(context),
        pass_(pass == PassKind::kR ? PassKind::kF : pass) {}

  Work run() {
    const TracedPass& pass = pass_ == PassKind::kF   ? block_.forward
                             : pass_ == PassKind::kB ? block_.backward_input
                                                     : block_.backward_weight;
    for (const TracedMatmul& matmul : pass.matmuls) add(matmul);
    for (const TracedAttention& attention : pass.attention) add(attention);
    work_.moved = Bytes(bytes_of(pass.moved, context_));
    work_.kernels = pass.kernels;
    for (const TracedExchange& exchange : block_.exchanges) {
      exchange.experts ? exchange_rows(exchange) : exchange_tensor(exchange);
    }
    return work_;
  }

 private:
  void add(const TracedMatmul& matmul) {
    const std::array<double, 4> sides = sides_of(matmul, context_);
    const auto whole = [&sides](TracedSide side) {
      constexpr double kMost = 1e15;
      return std::llround(std::clamp(sides[static_cast<size_t>(side)], 1.0, kMost));
    };
    const bool fp32 = matmul.fp32 || context_.precision == Precision::kFp32;
    work_.matmuls.push_back({.m = whole(TracedSide::kM),
                             .n = whole(TracedSide::kN),
                             .k = whole(TracedSide::kK),
                             .batch = whole(TracedSide::kBatch),
                             .precision = fp32 ? Precision::kFp32 : Precision::kBf16,
                             .result_bytes = pass_ == PassKind::kW ? kAddedGradient
                                             : fp32                ? 4.0
                                                                   : 2.0,
                             .name = matmul.name.c_str(),
                             .grouped = matmul.experts && matmul.sides.front().factor > 1});
  }

  void add(const TracedAttention& attention) {
    LayerContext own = context_;
    own.causal = context_.causal && attention.causal;
    const double batch = value_of(attention.batch, context_);
    const double rows = batch * value_of(attention.queries, context_);
    const bool of_sequence = attention.queries == attention.keys && attention.queries.seq == 1 &&
                             attention.queries.factor == 1 && attention.batch.batch == 1;
    const double pairs =
        of_sequence ? attention.batch.factor * attended_pairs(model_, Mixer::kAttention, own)
                    : rows * value_of(attention.keys, context_) * (own.causal ? 0.5 : 1);
    const double ranks = attention.divided ? context_.tensor : 1;
    const double heads = attention.heads / ranks;
    const double depth =
        attention.backward ? 3 * attention.qk + 2 * attention.v : attention.qk + attention.v;
    const double seen = of_sequence ? 1 + 1.0 * context_.before / context_.seq_length : 1;
    const double keys =
        seen * batch * value_of(attention.keys, context_) * attention.groups / ranks;
    const double bytes = (keys + rows * heads) * (attention.qk + attention.v) *
                         element_bytes(context_) * (attention.backward ? 2 : 1);
    work_.attention.push_back({.flops = Flops(2 * pairs * heads * depth),
                               .moved = Bytes(bytes),
                               .head_size = static_cast<int>(attention.qk),
                               .backward = attention.backward,
                               .rows = rows * heads,
                               .precision = context_.precision == Precision::kFp32
                                                ? Precision::kFp32
                                                : Precision::kBf16});
  }

  void exchange_tensor(const TracedExchange& exchange) {
    const auto kind = tensor_exchange(context_, pass_, exchange.enters);
    if (!kind) return;
    work_.collectives.push_back(
        {*kind, Group::kTensor, Bytes(whole_bytes(exchange.values, context_))});
  }

  void exchange_rows(const TracedExchange& exchange) {
    if (pass_ == PassKind::kW) return;
    if (exchange.enters) ++work_.routed;
    const Bytes bytes(bytes_of(exchange.values, context_));
    if (context_.expert > 1) {
      const int copies = context_.flex_dispatcher ? model_.experts->experts_per_token : 1;
      work_.collectives.push_back({CollectiveKind::kAllToAll, Group::kExpert, bytes, copies});
    }
    if (context_.expert_tensor == 1) return;
    const bool gather = exchange.enters == (pass_ == PassKind::kF);
    work_.collectives.push_back(
        {gather ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter, Group::kTensor,
         1.0 * context_.expert_tensor * bytes});
  }

  const Transformer& model_;
  const TracedBlock& block_;
  const LayerContext& context_;
  const PassKind pass_;
  Work work_;
};

// Gathered inputs are kept as parts, unless the framework keeps them whole; gathered gradients stay
// whole until W. Experts keep the rows that came.
double kept_bytes(const TracedKept& kept, const LayerContext& context) {
  const double part = bytes_of(kept.tensor, context);
  if (kept.gathered == TracedDivision::kExperts) return part * context.expert_tensor;
  if (kept.gathered == TracedDivision::kWhole) return part;
  const bool whole = kept.until == Kept::kFromB || context.keeps_gathered;
  return whole ? whole_bytes(kept.tensor, context) : part;
}

}  // namespace

const TracedBlock& traced_block(const Transformer& model, LayerKind kind) {
  return model.traced->blocks.at(static_cast<size_t>(kind) -
                                 static_cast<size_t>(LayerKind::kTraced1));
}

Work traced_work(const Transformer& model, const TracedBlock& block, PassKind pass,
                 const LayerContext& context) {
  return Builder(model, block, pass, context).run();
}

Bytes traced_kept(const TracedBlock& block, Kept until, const LayerContext& context) {
  Bytes sum;
  for (const TracedKept& kept : block.kept) {
    if (kept.until == until) sum += Bytes(kept_bytes(kept, context));
  }
  return sum;
}

Bytes traced_temporaries(const Transformer& model, const TracedBlock& block,
                         const LayerContext& context) {
  double most = 0;
  for (const std::vector<TracedTensor>& kernel : block.working) {
    most = std::max(most, bytes_of(kernel, context));
  }
  return Bytes(most + divided_tokens(context) * model.hidden_size * element_bytes(context));
}

}  // namespace pipesim
