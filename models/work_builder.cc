#include "models/work_builder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/tensor_exchange.h"

namespace pipesim {
namespace {

using enum RecomputeModule;

// Bytes of a number that is sent in fp8: 128 have a scale in fp32, or 32 one of a byte (mxfp8).
constexpr double kFp8Sent = 1 + 4.0 / 128;

// F and B. Forward the product of bias and probability (4 written), its sum (6 and 4), the parts
// joined (8), and cast (6); backward the cast (6), gradients of the sum (6), of the bias and of the
// probabilities (12 each).
constexpr std::array<double, 2> kBiased{28, 36};
// Clamped in two parts (4) that are joined (4); backward 6, and the halves joined 6.
constexpr std::array<double, 2> kClamped{8, 12};

std::int64_t whole(double value) { return std::max<std::int64_t>(1, std::llround(value)); }

}  // namespace

// LoRA's two matrices, from the input to the rank and from there to the output: their products are
// as large as one whose sides stand together.
void WorkBuilder::adapter(const Linear& of) {
  const std::int64_t rank = context_.adapter_rank;
  const std::int64_t sides = whole(of.inputs + of.outputs);
  const std::int64_t rows = whole(of.tokens);
  Matmul matmul{rows, sides, rank, whole(of.batch), kernel_precision(), element_};
  if (pass_ == PassKind::kB) matmul = {rows, rank, sides, matmul.batch, matmul.precision, element_};
  if (pass_ == PassKind::kW) {
    matmul = {sides, rank, rows, matmul.batch, matmul.precision, kAddedGradient};
  }
  matmul.name = "adapter";
  matmul.grouped = of.batch > 1 && of.experts;
  work_.matmuls.push_back(matmul);
}

void WorkBuilder::linear(const Linear& of) {
  if (context_.adapter_rank > 0 && of.adapted) adapter(of);
  if (is_frozen() && !of.trains && pass_ == PassKind::kW) return;
  const std::int64_t m = whole(of.tokens);
  const std::int64_t n = whole(of.outputs);
  const std::int64_t k = whole(of.inputs);
  Matmul matmul{m,       n, k, whole(of.batch), of.bf16 ? kernel_precision() : context_.precision,
                element_};
  if (pass_ == PassKind::kB) matmul = {m, k, n, matmul.batch, matmul.precision, element_};
  if (pass_ == PassKind::kW) matmul = {k, n, m, matmul.batch, matmul.precision, kAddedGradient};
  matmul.name = of.name;
  matmul.grouped = of.batch > 1 && of.experts;
  work_.matmuls.push_back(matmul);
  if (casts_weights(context_)) cast_weights(of);
  const double rows = of.tokens * of.batch;
  if (is_quantized(matmul.precision)) {
    // The input, or the gradient, is read, and written as it is and transposed.
    const double both = element_ + 2 * size_of(matmul.precision);
    stream(PassKind::kF, rows * of.inputs * both, 1);
    stream(PassKind::kB, rows * of.outputs * both, 1);
  }
  if (of.bias) stream(PassKind::kW, rows * of.outputs * element_, 1);
}

// Router and logits are none of Transformer Engine's layers, and are cast for B again.
void WorkBuilder::cast_weights(const Linear& of) {
  const double bytes = of.inputs * of.outputs * of.batch * (weight_bytes(context_) + element_);
  stream(PassKind::kF, bytes, 1);
  if (of.bf16) stream(PassKind::kB, bytes, 1);
}

void WorkBuilder::attend(Attention kernel) {
  kernel.precision = kernel_precision();
  work_.attention.push_back(kernel);
}

void WorkBuilder::collective(CollectiveKind kind, Group group, double bytes) {
  work_.collectives.push_back({kind, group, Bytes(bytes)});
}

void WorkBuilder::stream(PassKind pass, double bytes, int kernels) {
  if (pass != pass_) return;
  work_.moved += Bytes(bytes);
  work_.kernels += kernels;
}

void WorkBuilder::again(RecomputeGranularity of, double bytes) {
  if (context_.recompute.any(of)) stream(PassKind::kB, bytes, 1);
}

void WorkBuilder::again(RecomputeGranularity of, void (WorkBuilder::*part)()) {
  if (pass_ != PassKind::kB || !context_.recompute.any(of)) return;
  WorkBuilder forward(model_, PassKind::kF, context_);
  forward.mixer_ = mixer_;
  forward.mlp_size_ = mlp_size_;
  (forward.*part)();
  append(forward.work());
}

void WorkBuilder::norm(double tokens, double width, RecomputeGranularity of) {
  const double one = tokens * width * element_;
  again(of, 2 * one);
  stream(PassKind::kF, 2 * one, 1);  // in, out
  stream(PassKind::kB, 3 * one, 1);  // gradient, input, gradient
}

void WorkBuilder::before_divided(double width) { exchange_tensor(true, width); }

void WorkBuilder::after_divided() { exchange_tensor(false, hidden_); }

void WorkBuilder::exchange_tensor(bool enters, double width) {
  const auto kind = tensor_exchange(context_, pass_, enters);
  if (kind) collective(*kind, Group::kTensor, tokens_ * width * element_);
}

void WorkBuilder::residual() {
  const double one = divided_ * hidden_ * element_;
  const double mask = context_.dropout ? one / element_ : 0;
  const double n = model_.residual_streams;
  // Output, residual, sum; of streams every one is read, mixed with the others, and written.
  stream(PassKind::kF, (n > 1 ? 2 * n + 1 : 3) * one + mask, 1);
  // Both gradients, their sum; of streams theirs, the streams, and the output are read.
  stream(PassKind::kB, (n > 1 ? 3 * n + 2 : 3) * one, 1);
  if (context_.dropout) stream(PassKind::kB, 2 * one + mask, 1);
  if (model_.post_norms) norm(divided_, hidden_);
}

void WorkBuilder::enter_residual(const char* name) {
  const double n = model_.residual_streams;
  if (model_.residual_block > 0) weigh_sums();
  if (n < 2) return;
  linear({.name = name,
          .tokens = divided_,
          .inputs = n * hidden_,
          .outputs = n * n + 2 * n,
          .bf16 = true,
          .adapted = false});
  const double one = divided_ * hidden_ * element_;
  stream(PassKind::kF, (n + 1) * one, 2);
  stream(PassKind::kB, (2 * n + 1) * one, 2);
}

// One kernel reads the sums and the last output, and writes what weighs them added up.
void WorkBuilder::weigh_sums() {
  const double one = divided_ * hidden_ * element_;
  const double sums = residual_sums(model_) + 1;
  stream(PassKind::kF, (sums + 1) * one, 1);
  stream(PassKind::kB, (2 * sums + 1) * one, 1);
}

void WorkBuilder::layer(LayerKind kind) {
  mixer_ = mixer_of(kind);
  mlp_size_ = mlp_size(model_, kind);
  if (mixer_ != Mixer::kNone) attention_block();
  switch (feed_of(kind)) {
    case Feed::kExperts:
      moe_block();
      break;
    case Feed::kMlp:
      mlp_block();
      break;
    case Feed::kNone:
      break;
  }
}

void WorkBuilder::feed(LayerKind kind) {
  mlp_size_ = mlp_size(model_, kind);
  if (feed_of(kind) == Feed::kMlp) {
    again(kMlp, &WorkBuilder::dense_mlp);
    dense_mlp();
  }
  if (feed_of(kind) != Feed::kExperts) return;
  again(kMoe, &WorkBuilder::routed_experts);
  routed_experts();
  if (pass_ == PassKind::kW) return;
  // Rows are sorted by expert, and back.
  const double sorted =
      4 * model_.experts->computed_per_token() * divided_ * expert_width(model_) * element_;
  stream(pass_, sorted, 2);
  work_.permuted += Bytes(sorted);
}

void WorkBuilder::mlp_block() {
  enter_residual("streams before the MLP");
  norm(divided_, hidden_, kLayerNorm);
  again(kMlp, &WorkBuilder::dense_mlp);
  dense_mlp();
  residual();
}

void WorkBuilder::dense_mlp() {
  before_divided(hidden_);
  mlp(tokens_, hidden_, mlp_size_, ranks_, 1, {"MLP, first", "MLP, second", kMlpActivation, kMlp});
  after_divided();
}

void WorkBuilder::mlp(double tokens, double width, double ffn, double ranks, double batch,
                      const Names& names) {
  const double parts = model_.gated_mlp ? 2 : 1;
  linear({.name = names.first,
          .tokens = tokens,
          .inputs = width,
          .outputs = parts * ffn / ranks,
          .bias = has_mlp_bias(model_),
          .batch = batch});
  const double one = tokens * batch * ffn / ranks * element_;
  stream(PassKind::kF, (parts + 1) * one, 1);
  stream(PassKind::kB, (2 * parts + 1) * one, 1);
  if (!context_.recompute.any(names.whole)) again(names.activation, (parts + 1) * one);
  if (model_.gated_mlp && !context_.fused_gate) {
    stream(PassKind::kF, 2 * one, 1);  // the gate's activation, out and in
    stream(PassKind::kB, 2 * one, 1);
  }
  linear({.name = names.second,
          .tokens = tokens,
          .inputs = ffn / ranks,
          .outputs = width,
          .bias = has_mlp_bias(model_),
          .batch = batch});
}

void WorkBuilder::moe_block() {
  enter_residual("streams before the experts");
  norm(divided_, hidden_, kLayerNorm);
  again(kMoe, &WorkBuilder::moe);
  moe();
  residual();
}

void WorkBuilder::moe() {
  const Experts& experts = *model_.experts;
  linear({.name = "router",
          .tokens = divided_,
          .inputs = hidden_,
          .outputs = 1.0 * experts.num_experts,
          .bf16 = true,
          .adapted = false});
  if (experts.latent_size > 0) latent_projection();
  dispatch();
  if (!context_.recompute.any(kMoe)) again(kMoeDispatch, &WorkBuilder::send_to_experts);
  routed_experts();
  if (experts.shared_experts == 0) return;
  if (!context_.recompute.any(kMoe)) again(kSharedExperts, &WorkBuilder::shared_experts);
  shared_experts();
}

// The way into the space that routed experts work in, and out of it.
void WorkBuilder::latent_projection() {
  const double latent = model_.experts->latent_size;
  linear(
      {.name = "experts, compressing", .tokens = divided_, .inputs = hidden_, .outputs = latent});
  linear({.name = "experts, expanding", .tokens = divided_, .inputs = latent, .outputs = hidden_});
}

void WorkBuilder::routed_experts() {
  const Experts& experts = *model_.experts;
  const double rows = expert_rows(model_, context_);
  const double held = std::min(1.0 * experts.num_experts / context_.expert, std::ceil(rows));
  mlp(rows / held, expert_width(model_), experts.ffn_hidden_size, context_.expert_tensor, held,
      {"experts, first", "experts, second", kMoeActivation, kMoe});
  if (has_mlp_bias(model_)) expert_biases(rows);
}

// Megatron-Core adds biases expert by expert in fp32 and joins the parts (experts.py, _apply_bias);
// models with biases clamp what goes into the activation (fused_bias_geglu.py). Bytes a number.
void WorkBuilder::expert_biases(double rows) {
  const double parts = model_.gated_mlp ? 2 : 1;
  const double inner = rows * parts * model_.experts->ffn_hidden_size / context_.expert_tensor;
  const double outer = rows * expert_width(model_);
  if (pass_ == PassKind::kF) work_.biased += Bytes(kClamped[0] * inner + kBiased[0] * outer);
  if (pass_ == PassKind::kB) work_.biased += Bytes(kClamped[1] * inner + kBiased[1] * outer);
}

void WorkBuilder::shared_experts() {
  const Experts& experts = *model_.experts;
  before_divided(hidden_);
  mlp(tokens_, hidden_, shared_width(experts), ranks_, 1,
      {"shared experts, first", "shared experts, second", kMlpActivation, kMoe | kSharedExperts});
  after_divided();
  const double one = divided_ * hidden_ * element_;
  stream(PassKind::kF, 3 * one, 1);
  stream(PassKind::kB, 3 * one, 1);
  if (!experts.shared_gate) return;
  stream(PassKind::kF, 3 * one, 2);  // its product with a vector, and the weighing
  stream(PassKind::kB, 5 * one, 2);
}

// Rows of the tokens' experts to other ranks, in fp8 or as they are.
void WorkBuilder::exchange_rows(bool in_fp8) {
  if (context_.expert == 1) return;
  const Experts& experts = *model_.experts;
  const double sent = experts.computed_per_token() * divided_ * expert_width(model_) * element_;
  const int copies = context_.flex_dispatcher ? experts.experts_per_token : 1;
  // Groups of experts that a token may go to stand on so many of the ranks.
  const double reach = 1.0 * experts.groups_per_token / experts.groups;
  const double bytes = in_fp8 ? kFp8Sent / element_ * sent : sent;
  work_.collectives.push_back(
      {CollectiveKind::kAllToAll, Group::kExpert, Bytes(bytes), copies, reach});
}

void WorkBuilder::dispatch() {
  if (pass_ == PassKind::kW) return;
  const Experts& experts = *model_.experts;
  const double one = divided_ * expert_width(model_) * element_;
  const double sent = experts.computed_per_token() * one;
  exchange_rows(pass_ == PassKind::kF ? context_.fp8_dispatch : context_.fp8_combine_gradient);
  exchange_rows(false);
  if (context_.expert_tensor > 1) {
    const double all = sent * context_.expert_tensor;
    collective(CollectiveKind::kAllGather, Group::kTensor, all);
    collective(CollectiveKind::kReduceScatter, Group::kTensor, all);
  }
  // Scores in fp32: softmax, choice, weights.
  stream(pass_, 4 * divided_ * experts.num_experts * 4.0, 3);
  // Rows are copied out, sorted by expert, sorted back, and added up.
  const double sorted = 2 * (one + sent) + 4 * sent;
  stream(pass_, sorted, 4);
  work_.permuted += Bytes(sorted);
  ++work_.routed;
}

void WorkBuilder::send_to_experts() {
  const double one = divided_ * expert_width(model_) * element_;
  const double sent = model_.experts->computed_per_token() * one;
  exchange_rows(context_.fp8_dispatch);
  if (context_.expert_tensor > 1) {
    collective(CollectiveKind::kAllGather, Group::kTensor, sent * context_.expert_tensor);
  }
  const double sorted = one + sent + 2 * sent;
  stream(PassKind::kF, sorted, 2);
  work_.permuted += Bytes(sorted);
}

// The way of patches into the encoder.
void WorkBuilder::patch_projection() {
  const Encoder& encoder = *model_.encoder;
  if (encoder.frozen && pass_ != PassKind::kF) return;
  const double patches = 1.0 * encoder.patches * images_of(model_, context_);
  linear({.name = "patches",
          .tokens = patches,
          .inputs = 1.0 * encoder.inputs,
          .outputs = 1.0 * encoder.hidden_size,
          .adapted = false,
          .trains = context_.frozen});
  norm(patches, encoder.hidden_size);
}

// Projects every stretch of patches that becomes a token. A frozen encoder needs no gradient of
// what it put out.
void WorkBuilder::projector() {
  const Encoder& encoder = *model_.encoder;
  if (pass_ != PassKind::kF && !projects_back(encoder, context_)) return;
  const double tokens = 1.0 * encoder.patches * images_of(model_, context_) / encoder.merged;
  const double merged = 1.0 * encoder.hidden_size * encoder.merged;
  const double inner = encoder.projector_size;
  const bool reaches_encoder = !encoder.frozen || pass_ != PassKind::kB;
  for (int i = 0; i < encoder.projectors; ++i) {
    if (inner > 0) {
      if (reaches_encoder) {
        linear({.name = "projector, first",
                .tokens = tokens,
                .inputs = merged,
                .outputs = inner,
                .adapted = false,
                .trains = context_.frozen});
      }
      stream(PassKind::kF, 2 * tokens * inner * element_, 1);
      stream(PassKind::kB, 3 * tokens * inner * element_, 1);
    } else if (!reaches_encoder) {
      continue;
    }
    linear({.name = "projector",
            .tokens = tokens,
            .inputs = inner > 0 ? inner : merged,
            .outputs = hidden_,
            .adapted = false,
            .trains = context_.frozen});
  }
}

void WorkBuilder::embedding() {
  if (model_.encoder && images_of(model_, context_) > 0) {
    patch_projection();
    projector();
  }
  if (pass_ == PassKind::kW) return;  // the gradient of the rows is made where the others are, in B
  if (pass_ == PassKind::kB && is_frozen()) return;
  const double all = tokens_ * hidden_;
  const double mask = context_.dropout ? divided_ * hidden_ * (2 * element_ + 1) : 0;
  const bool learned = model_.positions == Positions::kLearned;
  const bool whole = context_.vocabulary_devices == 0;
  // Rows are added up in a gradient of the whole matrix, which is zeroed before, and read and added
  // to the main gradient after: no matmul does that here (PyTorch's embedding, Megatron-LM's hook).
  const double matrix = 1.0 * model_.vocab_size * hidden_ / ranks_;
  if (whole) {
    stream(PassKind::kF, all * 2 * element_, 1);
    stream(PassKind::kB, all * 3 * element_ / ranks_ + matrix * 4 * element_, 3);
  }
  if (learned) {
    stream(PassKind::kF, all * 3 * element_, 1);
    stream(PassKind::kB, all * (element_ + 8), 1);
  }
  if (context_.dropout) stream(pass_, mask, 1);
  if (!whole) return;
  if (pass_ == PassKind::kF) {
    after_divided();
  } else if (context_.tensor > 1 && context_.sequence_parallel) {
    collective(CollectiveKind::kAllGather, Group::kTensor, all * element_);
  }
}

void WorkBuilder::decoder_embedding() {
  const double parts = context_.sequence_parallel ? ranks_ : 1;
  norm(1.0 * context_.micro_batch_size * context_.encoded / parts, hidden_);
  embedding();
}

void WorkBuilder::share_of_embedding(double rows) {
  const double all = tokens_ * hidden_ * element_;
  stream(PassKind::kF, 3 * all, 2);  // rows in and out; zeros for what others have
  // A gradient of all rows is zeroed, filled, and read and added to the main one.
  const double gradient = is_frozen() ? 0 : rows * hidden_ * 4 * element_;
  stream(PassKind::kB, all + gradient, 3);
  if (pass_ == PassKind::kF) after_divided();
}

void WorkBuilder::output() {
  const double n = model_.residual_streams;
  if (model_.residual_block > 0) weigh_sums();
  if (n > 1) {
    stream(PassKind::kF, (2 * n + 1) * divided_ * hidden_ * element_, 2);
    stream(PassKind::kB, (3 * n + 1) * divided_ * hidden_ * element_, 2);
  }
  norm(divided_, hidden_);
  if (context_.vocabulary_devices == 0) logits(std::ceil(model_.vocab_size / ranks_));
}

void WorkBuilder::early_gradient(double columns) {
  stream(PassKind::kF, tokens_ * columns * (4 + element_), 1);
  stream(PassKind::kF, 2 * tokens_ * hidden_ * element_, 1);
}

void WorkBuilder::rescale_softmax(double columns) {
  stream(PassKind::kB, tokens_ * columns * 8, 1);
}

void WorkBuilder::logits_gradient(double columns) {
  stream(PassKind::kB, tokens_ * columns * (8 + 6), 2);
}

void WorkBuilder::output_matmul(double columns) {
  before_divided(hidden_);
  linear({.name = "logits",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = columns,
          .bf16 = true,
          .adapted = false});
}

void WorkBuilder::append(const Work& more) {
  for (const Matmul& each : more.matmuls) work_.matmuls.push_back(each);
  for (const Collective& each : more.collectives) work_.collectives.push_back(each);
  work_.moved += more.moved;
  work_.kernels += more.kernels;
  work_.permuted += more.permuted;
  work_.biased += more.biased;
  work_.routed += more.routed;
}

void WorkBuilder::logits(double columns) {
  output_matmul(columns);
  if (context_.fused_loss) {
    // Read twice for the softmax, written once as the gradient, which B takes as it is.
    stream(PassKind::kF, tokens_ * columns * 3 * element_, 2);
  } else {
    unfused_loss(columns);
  }
  if (context_.tensor > 1 && pass_ == PassKind::kF) {
    // The maximum, the target's logit, and the sum.
    for (int i = 0; i < 3; ++i) {
      collective(CollectiveKind::kAllReduce, Group::kTensor, tokens_ * 4);
    }
  }
}

void WorkBuilder::unfused_loss(double columns) {
  // Loss in fp32, a kernel for each: cast, maximum, its subtraction, exponentials, their sum,
  // division (Megatron-LM's cross entropy, not fused); backward the gradient in place, and cast.
  stream(PassKind::kF, tokens_ * columns * (6 + 4 + 8 + 8 + 4 + 8), 6);
  logits_gradient(columns);
}

void WorkBuilder::mtp_projection() {
  norm(divided_, hidden_);
  norm(divided_, hidden_);
  before_divided(2 * hidden_);
  linear({.name = "projection",
          .tokens = tokens_,
          .inputs = 2 * hidden_,
          .outputs = hidden_ / ranks_});
  if (context_.tensor > 1 && pass_ == PassKind::kF) {
    collective(CollectiveKind::kAllGather, Group::kTensor, tokens_ * hidden_ * element_);
  }
}

}  // namespace pipesim
