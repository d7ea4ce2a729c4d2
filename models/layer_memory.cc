#include "models/layer_memory.h"

#include "models/layer_parameters.h"
#include "models/traced_layer.h"

namespace pipesim {
namespace {

using enum RecomputeModule;

// Options that drop a module's input: recomputation and offload.
struct Module {
  RecomputeGranularity again = {};
  OffloadModules leaves = {};
};

class Tensors {
 public:
  Tensors(const Transformer& model, const LayerContext& context)
      : model_(model),
        context_(context),
        element_(element_bytes(context)),
        linear_(size_of(context.precision)),
        before_activation_(context.fp8_activation_input ? size_of(Precision::kFp8) : element_),
        tokens_(layer_tokens(context)),
        divided_(divided_tokens(context)),
        read_by_columns_(context.keeps_gathered ? tokens_ : divided_),
        ranks_(context.tensor),
        hidden_(model.hidden_size) {}

  void embedding() {
    keep("token ids", tokens_ * 8, Kept::kForB);
    if (context_.dropout) keep("dropout mask", divided_ * hidden_, Kept::kForB);
  }
  void decoder_embedding() {
    const double encoded = 1.0 * context_.micro_batch_size * context_.encoded;
    keep("input of the encoder's final norm",
         encoded / (context_.sequence_parallel ? ranks_ : 1) * hidden_ * element_, Kept::kForB);
    embedding();
  }
  void output() {
    keep("input of the final norm", divided_ * residual_width(model_) * element_, Kept::kForB);
    if (context_.vocabulary_devices > 0) return;
    const bool trains = trains_model(context_);
    if (trains) keep("input of the logits", read_by_columns_ * hidden_ * element_, Kept::kForW);
    const double logits = tokens_ * model_.vocab_size / ranks_;
    keep("softmax of the logits, fp32", logits * 4, Kept::kForB);
    if (trains) keep("gradient of the logits", logits * element_, Kept::kFromB);
  }
  void mtp_projection() {
    keep("inputs of the MTP norms", 2 * divided_ * hidden_ * element_, Kept::kForB);
    keep("input of the MTP projection", 2 * divided_ * hidden_ * linear_, Kept::kForW);
    keep("gradient of the MTP projection", tokens_ * hidden_ / ranks_ * linear_, Kept::kFromB);
  }
  void layer(LayerKind kind) {
    mixer_ = mixer_of(kind);
    const bool crosses = mixer_ == Mixer::kCross;
    if (crosses) mixer_ = Mixer::kAttention;
    if (mixer_ != Mixer::kNone) attention();
    if (crosses) cross_attention();
    if (feed_of(kind) != Feed::kNone) mlp_block(feed_of(kind), mlp_size(model_, kind));
  }
  void projector();
  [[nodiscard]] const KeptTensors& list() const { return list_; }

 private:
  // Where the product of a gated activation is a kernel of its own.
  void keep_gate(double inner, RecomputeGranularity again) {
    if (!model_.gated_mlp || context_.fused_gate) return;
    keep("gate after its activation", inner * element_, Kept::kForB, {again});
  }
  void keep_output_gate(double elements) {
    if (elements == 0) return;
    keep("gate of attention's output", elements * element_, Kept::kForB);
    keep("output of attention, before its gate", elements * element_, Kept::kForB);
  }
  void keep(const char* name, double bytes, Kept kept, Module module = {}) {
    if (context_.frozen) {  // no matrix has a W
      if (kept == Kept::kForW || kept == Kept::kFromB) return;
      kept = Kept::kForB;
    }
    list_.push_back({name, Bytes(bytes), kept, module.again, module.leaves});
  }
  void attention();
  void cross_attention();
  void mlp_block(Feed feed, double size);
  void plain_projections();
  void latent_projections();
  void linear_attention();
  void indexer();
  void core();
  void compressed_projections();
  void states_of_channels();
  void short_convolution();
  void before_block(const char* streams, const char* output);
  void after_block(const char* mask, const char* norm);
  void experts();

  const Transformer& model_;
  const LayerContext& context_;
  const double element_;
  const double linear_;  // bytes of an element that a linear layer keeps
  const double before_activation_;
  const double tokens_;
  const double divided_;
  const double read_by_columns_;  // tokens that matrices divided by columns keep
  const double ranks_;
  const double hidden_;
  Mixer mixer_ = Mixer::kAttention;
  KeptTensors list_;
};

void Tensors::plain_projections() {
  const Heads heads = heads_of(model_, mixer_);
  const double queries = tokens_ * heads.queries * heads.qk / ranks_;
  const double keys = tokens_ * heads.groups * heads.qk / ranks_;
  const double values = tokens_ * heads.groups * heads.v / ranks_;
  keep("input of queries, keys, values", read_by_columns_ * hidden_ * linear_, Kept::kForW,
       {kLayerNorm, OffloadModule::kQkvLinear});
  const double rank = tokens_ * model_.q_rank;
  if (rank > 0) {
    keep("compressed queries, before their norm", rank * element_, Kept::kForB);
    keep("compressed queries", rank * linear_, Kept::kForW, {kLatentNorm});
  }
  if (model_.qk_norm != QkNorm::kNone) {
    keep("inputs of the query and key norms", (queries + keys) * element_, Kept::kForB);
  }
  const Module core{{}, OffloadModule::kCoreAttention};
  const double repeated =
      heads.groups > 0 ? attending_heads(model_, mixer_, context_).groups / heads.groups : 1;
  keep("queries", queries * element_, Kept::kForB, core);
  keep("keys", repeated * keys * element_, Kept::kForB, core);
  keep("values", repeated * values * element_, Kept::kForB, core);
  const double gate = model_.output_gate ? tokens_ * heads.queries * heads.v / ranks_ : 0;
  const double own_values = tokens_ * heads.value_groups * heads.v / ranks_;
  keep("gradient of queries, keys, values", (queries + rank + gate + keys + own_values) * linear_,
       Kept::kFromB);
  keep_output_gate(gate);
}

// The indexer's scores are made again.
void Tensors::indexer() {
  const SparseAttention& indexer = *model_.sparse;
  const double width = 1.0 * indexer.num_heads * indexer.head_size + indexer_keys(model_);
  keep("queries, keys and weights of the indexer", tokens_ * width * element_, Kept::kForB);
  keep("tokens that the indexer found", tokens_ * indexer.topk * 4, Kept::kForB);
  keep("gradient of the indexer", tokens_ * width * linear_, Kept::kFromB);
}

// Backward makes scores and states of the chunks again.
void Tensors::linear_attention() {
  const LinearAttention& linear = *model_.linear;
  const double values = tokens_ * linear.values() / ranks_;
  const double convolved = tokens_ * linear.convolved() / ranks_;
  const double heads = tokens_ * linear.num_heads / ranks_;
  using Kind = LinearAttention::Kind;
  if (!has_scores(mixer_)) {  // else attention's
    keep("input of queries, keys, values, gates", read_by_columns_ * hidden_ * linear_, Kept::kForW,
         {kLayerNorm, OffloadModule::kQkvLinear});
  }
  if (linear.kind == Kind::kShortConv) return short_convolution();
  if (linear.conv_kernel > 0) {
    keep("input of the convolution", convolved * element_, Kept::kForB);
  }
  if (linear.kind == Kind::kMamba1) {
    states_of_channels();
  } else {
    keep("queries, keys, values", convolved * element_, Kept::kForB,
         {{}, OffloadModule::kCoreAttention});
    keep("decays and steps, fp32", tokens_ * linear.scalars() / ranks_ * 4, Kept::kForB);
  }
  keep("gate of linear attention's output", values * element_, Kept::kForB);
  if (linear.kind == Kind::kGatedDelta || linear.kind == Kind::kKda) {
    keep("solved chunks", heads * linear.chunk_size * element_, Kept::kForB, {kCoreAttention});
  }
  if (linear.kind == Kind::kKda) {
    const double ranks = tokens_ * (linear.step_rank + linear.gate_rank);
    keep("compressed decays and gates", ranks * linear_, Kept::kForW);
    keep("gradient of decays and gates",
         (ranks + tokens_ * linear.keys() / ranks_ + (linear.gate_rank > 0 ? values : 0)) * linear_,
         Kept::kFromB);
  }
  keep("output of linear attention, before its gate", values * element_, Kept::kForB);
  keep("output of linear attention", values * linear_, Kept::kForW,
       {{}, OffloadModule::kAttentionProjection});
  keep("gradient of queries, keys, values, gates", tokens_ * linear.projected() / ranks_ * linear_,
       Kept::kFromB);
}

// Mamba-1's, whose channels are read by the scan and by what makes its steps.
void Tensors::states_of_channels() {
  const LinearAttention& linear = *model_.linear;
  const double channels = tokens_ * linear.values() / ranks_;
  const double selected = tokens_ * (linear.step_rank + 2.0 * linear.key_head_size);
  keep("channels", channels * element_, Kept::kForBoth, {{}, OffloadModule::kCoreAttention});
  keep("compressed steps and states", selected * element_, Kept::kForBoth);
  keep("steps", channels * element_, Kept::kForB);
  keep("gradient of steps and states", (selected + channels) * linear_, Kept::kFromB);
}

// Products on both sides of the convolution keep their factors.
void Tensors::short_convolution() {
  const double one = tokens_ * model_.linear->values() / ranks_;
  keep("values and gates of the convolution", 3 * one * element_, Kept::kForB);
  keep("input of the convolution", one * element_, Kept::kForB);
  keep("output of the convolution, before its gate", one * element_, Kept::kForB);
  keep("output of the convolution", one * linear_, Kept::kForW,
       {{}, OffloadModule::kAttentionProjection});
  keep("gradient of values and gates", 3 * one * linear_, Kept::kFromB);
}

void Tensors::projector() {
  const Encoder& encoder = *model_.encoder;
  if (!projects_back(encoder, context_)) return;
  const double patches = 1.0 * encoder.patches * images_of(model_, context_);
  const double tokens = patches / encoder.merged;
  if (!encoder.frozen) {
    keep("patches", patches * encoder.inputs * linear_, Kept::kForW);
    keep("input of the encoder's last norm", patches * encoder.hidden_size * element_, Kept::kForB);
  }
  keep("input of the projector", patches * encoder.hidden_size * linear_, Kept::kForW);
  const double inner = tokens * encoder.projector_size * encoder.projectors;
  keep("projector before its activation", inner * element_, Kept::kForB);
  keep("projector after its activation", inner * linear_, Kept::kForW);
  keep("gradients of the projector",
       (inner + encoder.projectors * tokens * hidden_ +
        (encoder.frozen ? 0 : patches * encoder.hidden_size)) *
           linear_,
       Kept::kFromB);
}

void Tensors::latent_projections() {
  const LatentAttention& latent = *model_.latent;
  const double heads = tokens_ * model_.num_attention_heads / ranks_;
  const double qk = qk_head_size(model_);
  const double v = latent.v_head_size;
  const double q_rank = divided_ * latent.q_rank;
  const double kv_rank = divided_ * latent.kv_rank;
  keep("input of the compression", divided_ * hidden_ * linear_, Kept::kForW,
       {kLayerNorm, OffloadModule::kQkvLinear});
  keep("compressed, before their norms", (q_rank + kv_rank) * element_, Kept::kForB);
  keep("compressed, inputs of queries, keys, values", (q_rank + kv_rank) * linear_, Kept::kForW,
       {kLatentNorm});
  const Module core{kLatentUp, OffloadModule::kCoreAttention};
  keep("queries", heads * qk * element_, Kept::kForB, core);
  if (is_sparse(mixer_)) {
    keep("queries in the latent space", heads * (latent.kv_rank + latent.rope_head_size) * element_,
         Kept::kForB, core);
  } else {
    keep("keys", heads * qk * element_, Kept::kForB, core);
    keep("values", heads * v * element_, Kept::kForB, core);
  }
  keep("gradient of the compressed",
       (q_rank + kv_rank + divided_ * latent.rope_head_size) * linear_, Kept::kFromB);
  const double gate = model_.output_gate ? heads * v : 0;
  keep("gradient of queries, keys, values",
       (heads * (qk + latent.nope_head_size + v) + gate) * linear_, Kept::kFromB);
  keep_output_gate(gate);
}

// A norm of the compressed queries and one of the keys, which are their own values.
void Tensors::compressed_projections() {
  const CompressedAttention& compressed = *model_.compressed;
  const double head = model_.kv_channels;
  const double rank = divided_ * compressed.q_rank;
  const double keys = divided_ * head;
  const double queries = tokens_ * model_.num_attention_heads * head / ranks_;
  const int ratio = compression(model_, mixer_);
  const double stretches = ratio > 0 ? 2 * divided_ * compressed_width(model_, mixer_) : 0;
  keep("input of the compression", divided_ * hidden_ * linear_, Kept::kForW,
       {kLayerNorm, OffloadModule::kQkvLinear});
  keep("compressed, before their norms", (rank + keys) * element_, Kept::kForB);
  keep("compressed, inputs of queries", rank * linear_, Kept::kForW, {kLatentNorm});
  if (ratio > 0) keep("stretches that become one key", stretches * element_, Kept::kForB);
  const Module core{{}, OffloadModule::kCoreAttention};
  keep("queries", queries * element_, Kept::kForB, core);
  keep("keys", tokens_ * head * (1 + (ratio > 0 ? 1.0 / ratio : 0)) * element_, Kept::kForB, core);
  keep("gradient of the compressed", (rank + keys + stretches) * linear_, Kept::kFromB);
  keep("gradient of queries", queries * linear_, Kept::kFromB);
  const double outputs = tokens_ * compressed.output_groups * compressed.output_rank / ranks_;
  keep("compressed output of attention", outputs * linear_, Kept::kForW);
  keep("gradient of the compressed output", outputs * linear_, Kept::kFromB);
}

void Tensors::core() {
  const Heads all = heads_of(model_, mixer_);
  const double heads = all.queries / ranks_;
  const double outputs = tokens_ * heads * all.v;
  if (is_sparse(mixer_) && model_.latent) {
    keep("output of attention in the latent space",
         tokens_ * heads * model_.latent->kv_rank * element_, Kept::kForB);
  }
  const Module projection{{}, OffloadModule::kAttentionProjection};
  if (context_.flash_attention || is_sparse(mixer_) || model_.compressed) {
    keep("log-sum-exp of the scores, fp32", tokens_ * heads * 4, Kept::kForB, {kCoreAttention});
    const int bits = context_.attention_output_bits;
    const bool copied = is_quantized(context_.precision) && bits == 0;
    const double element = bits > 0 ? bits / 8.0 : element_;
    keep("output of attention", outputs * element, copied ? Kept::kForB : Kept::kForBoth,
         copied ? Module{} : projection);
    if (copied) keep("output of attention, fp8", outputs * linear_, Kept::kForW, projection);
    return;
  }
  const double scores =
      tokens_ * (mixer_ == Mixer::kCross ? context_.encoded : context_.seq_length) * heads;
  keep("softmax of the scores", scores * element_, Kept::kForB,
       {kCoreAttention, OffloadModule::kCoreAttention});
  if (context_.dropout) {
    keep("mask of the scores", scores, Kept::kForB, {kCoreAttention});
    keep("scores after dropout", scores * element_, Kept::kForB, {kCoreAttention});
  }
  keep("output of attention", outputs * linear_, Kept::kForW, projection);
}

// The gradient of a row-divided matrix's output was gathered for B, and stays so for W.
void Tensors::after_block(const char* mask, const char* norm) {
  if (context_.dropout) keep(mask, divided_ * hidden_, Kept::kForB, {kDropout});
  if (model_.post_norms) keep(norm, divided_ * hidden_ * element_, Kept::kForB);
}

// Streams, or the sum before and a share of those of all blocks.
void Tensors::before_block(const char* streams, const char* output) {
  const double one = divided_ * hidden_ * element_;
  const double n = model_.residual_streams;
  if (n > 1) {
    keep(streams, n * one, Kept::kForB);
    keep(output, one, Kept::kForB);
  }
  if (model_.residual_block > 0) {
    keep("sums of layers", (1 + 0.5 / model_.residual_block) * one, Kept::kForB);
  }
}

void Tensors::attention() {
  before_block("streams before attention", "output of attention for the streams");
  keep("input of the attention norm", divided_ * hidden_ * element_, Kept::kForB,
       {{}, OffloadModule::kAttentionNorm});
  if (has_states(mixer_)) linear_attention();
  if (has_scores(mixer_)) {
    if (model_.compressed) {
      compressed_projections();
    } else if (model_.latent) {
      latent_projections();
    } else {
      plain_projections();
    }
    if (finds_tokens(mixer_)) indexer();
    core();
  }
  keep("gradient of attention", tokens_ * hidden_ * linear_, Kept::kFromB);
  after_block("mask after attention", "input of the norm after attention");
}

// Keys and values are made of the encoder's output, which the stage keeps.
void Tensors::cross_attention() {
  mixer_ = Mixer::kCross;
  const Heads heads = heads_of(model_, mixer_);
  const double encoded = 1.0 * context_.micro_batch_size * context_.encoded;
  const double queries = tokens_ * heads.queries * heads.qk / ranks_;
  const double keys = encoded * heads.groups * heads.qk / ranks_;
  const double values = encoded * heads.groups * heads.v / ranks_;
  keep("input of the cross attention's norm", divided_ * hidden_ * element_, Kept::kForB,
       {{}, OffloadModule::kAttentionNorm});
  keep("input of cross attention's queries", read_by_columns_ * hidden_ * linear_, Kept::kForW,
       {kLayerNorm, OffloadModule::kQkvLinear});
  const Module module{{}, OffloadModule::kCoreAttention};
  keep("queries of cross attention", queries * element_, Kept::kForB, module);
  keep("keys of cross attention", keys * element_, Kept::kForB, module);
  keep("values of cross attention", values * element_, Kept::kForB, module);
  keep("gradient of cross attention's queries, keys, values", (queries + keys + values) * linear_,
       Kept::kFromB);
  core();
  keep("gradient of cross attention", tokens_ * hidden_ * linear_, Kept::kFromB);
  after_block("mask after cross attention", "input of the norm after cross attention");
}

void Tensors::mlp_block(Feed feed, double size) {
  before_block("streams before the MLP", "output of the MLP for the streams");
  keep("input of the MLP norm", divided_ * hidden_ * element_, Kept::kForB,
       {{}, OffloadModule::kMlpNorm});
  if (feed == Feed::kExperts) {
    experts();
  } else {
    const double inner = tokens_ * size / ranks_;
    const double parts = model_.gated_mlp ? 2 : 1;
    keep("input of the MLP", read_by_columns_ * hidden_ * linear_, Kept::kForW, {kLayerNorm});
    keep("MLP before its activation", parts * inner * before_activation_, Kept::kForB, {kMlp});
    keep_gate(inner, kMlp | kMlpActivation);
    keep("MLP after its activation", inner * linear_, Kept::kForW, {kMlp | kMlpActivation});
    keep("gradient of the MLP before its activation", parts * inner * linear_, Kept::kFromB);
    keep("gradient of the MLP", tokens_ * hidden_ * linear_, Kept::kFromB);
  }
  after_block("mask after the MLP", "input of the norm after the MLP");
}

void Tensors::experts() {
  const Experts& experts = *model_.experts;
  const double parts = model_.gated_mlp ? 2 : 1;
  const double rows = expert_rows(model_, context_);
  const double inner = rows * experts.ffn_hidden_size / context_.expert_tensor;
  keep("input of the router", divided_ * hidden_ * element_, Kept::kForW, {kLayerNorm});
  keep("scores of the router, fp32", divided_ * experts.num_experts * 4, Kept::kForB, {kMoe});
  keep("gradient of the router, fp32", divided_ * experts.num_experts * 4, Kept::kFromB);
  const double width = expert_width(model_);
  if (experts.latent_size > 0) {
    keep("input of the experts' expansion", divided_ * width * linear_, Kept::kForW, {kMoe});
    keep("gradients of the experts' compression", divided_ * (width + hidden_) * linear_,
         Kept::kFromB);
  }
  keep("input of the experts", rows * width * linear_, Kept::kForW,
       {kMoe | kMoeDispatch, OffloadModule::kExpertFc1});
  keep("experts before their activation", parts * inner * before_activation_, Kept::kForB,
       {kMoe, OffloadModule::kMoeActivation});
  keep_gate(inner, kMoe | kMoeActivation);
  keep("experts after their activation", inner * linear_, Kept::kForW, {kMoe | kMoeActivation});
  keep("gradient of the experts before their activation", parts * inner * linear_, Kept::kFromB);
  keep("gradient of the experts", rows * width * linear_, Kept::kFromB);
  if (experts.shared_experts == 0) return;
  const double shared = tokens_ * shared_width(experts) / ranks_;
  const RecomputeGranularity whole = kMoe | kSharedExperts;
  // Their input is the router's; in fp8 it is a copy.
  if (is_quantized(context_.precision)) {
    keep("input of the shared experts, fp8", divided_ * hidden_ * linear_, Kept::kForW, {whole});
  }
  keep("shared experts before their activation", parts * shared * before_activation_, Kept::kForB,
       {whole});
  keep_gate(shared, whole | kMlpActivation);
  keep("shared experts after their activation", shared * linear_, Kept::kForW,
       {whole | kMlpActivation});
  keep("gradient of the shared experts before their activation", parts * shared * linear_,
       Kept::kFromB);
  keep("gradient of the shared experts", tokens_ * hidden_ * linear_, Kept::kFromB);
}

KeptTensors kept_of_traced(const TracedBlock& block, const LayerContext& context) {
  const auto kept = [&](Kept until) { return traced_kept(block, until, context); };
  return {{"saved for the input's gradient", kept(Kept::kForB), Kept::kForB},
          {"saved for the weights' gradients", kept(Kept::kForW), Kept::kForW},
          {"saved for both gradients", kept(Kept::kForBoth), Kept::kForBoth},
          {"gradients that the weights' are made of", kept(Kept::kFromB), Kept::kFromB}};
}

KeptTensors tensors_of(const Transformer& model, LayerKind kind, const LayerContext& context) {
  if (kind == LayerKind::kEncoder) {
    if (!has_backward(model, kind)) return {};
    const Transformer encoder = encoder_of(model);
    const LayerContext own = encoder_context(model, context);
    Tensors tensors(encoder, own);
    tensors.layer(LayerKind::kDense);
    return tensors.list();
  }
  if (is_traced(kind)) return kept_of_traced(traced_block(model, kind), context);
  LayerContext own = context_of(kind, model, context);
  if (kind == LayerKind::kEmbedding) own.frozen = false;  // the projector
  Tensors tensors(model, own);
  if (kind == LayerKind::kEmbedding) {
    tensors.embedding();
    if (model.encoder) tensors.projector();
  } else if (kind == LayerKind::kDecoderEmbedding) {
    tensors.decoder_embedding();
  } else if (kind == LayerKind::kOutput) {
    tensors.output();
  } else {
    if (kind == LayerKind::kMtp) tensors.mtp_projection();
    tensors.layer(kind == LayerKind::kMtp ? mtp_layer_kind(model) : kind);
  }
  return tensors.list();
}

}  // namespace

KeptTensors kept_tensors(const Transformer& model, LayerKind kind, const LayerContext& context) {
  KeptTensors list = tensors_of(model, kind, context);
  if (!casts_weights(context) || !is_layer(kind) || !has_backward(model, kind)) return list;
  const LayerParameters held =
      layer_parameters(model, kind, {context.tensor, context.expert, context.expert_tensor});
  list.push_back(
      {"16-bit copies of the weights", Bytes(held.matmul * element_bytes(context)), Kept::kForB});
  return list;
}

namespace {

// Where what F has made of a tensor counts until B.
Bytes& bytes_of(const KeptTensor& tensor, const LayerContext& context, LayerMemory& memory) {
  if (context.recompute.any(tensor.again)) return memory.rebuilt;
  const bool whole = context.recompute == RecomputeGranularity::kFull;
  return !whole && context.offloaded.any(tensor.leaves) ? memory.offloaded : memory.activation;
}

// Elements of a layer's input; none where it has no backward.
double checkpoint_elements(const Transformer& model, LayerKind kind, const LayerContext& context) {
  if (kind != LayerKind::kEncoder) {
    return divided_tokens(context_of(kind, model, context)) * residual_width(model);
  }
  if (!has_backward(model, kind)) return 0;
  return divided_tokens(encoder_context(model, context)) * model.encoder->hidden_size;
}

}  // namespace

LayerMemory layer_memory(const Transformer& model, LayerKind kind, const LayerContext& context) {
  LayerMemory memory;
  LayerParameters held =
      layer_parameters(model, kind, {context.tensor, context.expert, context.expert_tensor});
  const bool ends = !is_layer(kind);
  if (ends && context.vocabulary_devices > 0) {
    held.dense -= 1.0 * model.vocab_size / context.tensor * model.hidden_size;
  }
  const LayerParameters trained = trained_parameters(model, kind, held, context);
  const bool beside = context.adapter_rank > 0;  // adapters, of what is held
  memory.dense_parameters = held.dense + (beside ? trained.dense : 0);
  memory.expert_parameters = held.expert + (beside ? trained.expert : 0);
  memory.dense_trained = trained.dense;
  memory.expert_trained = trained.expert;
  memory.weights =
      Bytes((memory.dense_parameters + memory.expert_parameters) * weight_bytes(context));
  if (is_quantized(context.precision) && !ends) {
    const double copies = size_of(context.precision) * (context.fp8_transposes ? 2 : 1);
    memory.weights +=
        Bytes((copies - (context.fp8_parameters ? weight_bytes(context) : 0)) * held.matmul);
  }
  for (const KeptTensor& tensor : kept_tensors(model, kind, context)) {
    if (tensor.kept != Kept::kFromB) bytes_of(tensor, context, memory) += tensor.bytes;
    if (tensor.kept != Kept::kForB) memory.weight_stash += tensor.bytes;
  }
  memory.checkpoint =
      ends ? memory.activation
           : Bytes(checkpoint_elements(model, kind, context) * element_bytes(context));
  return memory;
}

Bytes encoded_bytes(const Transformer& model, const LayerContext& context) {
  return Bytes(divided_tokens(context) * model.hidden_size * element_bytes(context));
}

Bytes message_bytes(const Transformer& model, const LayerContext& context,
                    const StageLayers& sender) {
  const bool divided = context.sequence_parallel || context.scatter_sends;
  double tokens = layer_tokens(context);
  if (decodes(model, sender)) {
    tokens += layer_tokens(context_of(LayerKind::kCross, model, context));
  }
  return Bytes(tokens * residual_width(model) * element_bytes(context) /
               (divided ? context.tensor : 1));
}

}  // namespace pipesim
