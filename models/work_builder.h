// Builds the work of one pass of a layer, part by part: the inside of models/layer_work.h.
#pragma once

#include "models/layer_context.h"
#include "models/transformer.h"
#include "models/work.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// Builds a layer part by part; each part knows its work in every pass. Requires fault_of(model,
// context) to be empty; keeps references to both.
class WorkBuilder {
 public:
  WorkBuilder(const Transformer& model, PassKind pass, const LayerContext& context)
      : model_(model),
        context_(context),
        pass_(pass == PassKind::kR ? PassKind::kF : pass),
        element_(element_bytes(context)),
        hidden_(model.hidden_size),
        tokens_(layer_tokens(context)),
        divided_(divided_tokens(context)),
        ranks_(context.tensor) {}

  void layer(LayerKind kind);
  // The part of `layer` between the two exchanges of tokens; without experts, the MLP.
  void feed(LayerKind kind);
  // The ends of the model, without the shares of a vocabulary that all devices divide.
  void embedding();
  void decoder_embedding();
  void output();
  void mtp_projection();
  // Work of a share of a divided vocabulary with this many rows of the embedding, or columns of the
  // output: layer_work's, in the builder's pass.
  void share_of_embedding(double rows);
  void logits(double columns);
  void unfused_loss(double columns);
  // vocab-2's in F: the softmax in 16 bits for the gradient's matmul, the targets' rows.
  void early_gradient(double columns);
  // In B: a softmax that was divided by the share's own sum is multiplied to that of all shares.
  void rescale_softmax(double columns);
  // Parts of `logits`: its matmul, and the gradient that B makes of F's kept values.
  void output_matmul(double columns);
  void logits_gradient(double columns);
  void append(const Work& more);
  [[nodiscard]] const Work& work() const { return work_; }

 private:
  struct Linear {
    const char* name = "";
    double tokens = 0;
    double inputs = 0;
    double outputs = 0;
    bool bias = false;
    bool bf16 = false;  // whatever the precision of the other linear layers
    double batch = 1;
    bool experts = true;  // where `batch` is more than one: their rows differ
    bool adapted = true;  // has an adapter where adapters train alone
    bool trains = false;  // where the model's matrices are frozen
  };
  void linear(const Linear& of);
  // Precision of kernels that no quantized copy is made for.
  [[nodiscard]] Precision kernel_precision() const {
    return is_quantized(context_.precision) ? Precision::kBf16 : context_.precision;
  }
  // Tokens whose keys attention sees, in a microbatch on this GPU, and in a sequence.
  [[nodiscard]] double key_tokens() const {
    return mixer_ == Mixer::kCross ? 1.0 * context_.micro_batch_size * context_.encoded : tokens_;
  }
  void add_position_scores(bool backward);
  [[nodiscard]] bool is_frozen() const { return !trains_model(context_); }
  void adapter(const Linear& of);
  void cast_weights(const Linear& of);
  void attend(Attention kernel);
  void collective(CollectiveKind kind, Group group, double bytes);
  // Bytes moved and kernels launched in F, or in B.
  void stream(PassKind pass, double bytes, int kernels);
  // A kernel of F that B runs again where `of` is recomputed.
  void again(RecomputeGranularity of, double bytes);
  // A part of F likewise.
  void again(RecomputeGranularity of, void (WorkBuilder::*part)());
  void norm(double tokens, double width, RecomputeGranularity of = {});
  void before_divided(double width);  // the way into column-divided matrices
  void after_divided();               // the way out of row-divided ones
  void exchange_tensor(bool enters, double width);
  void residual();
  void attention_block();
  void scores_part();
  void states_part();
  void cross_part();
  // The input of attention or MLP where a layer has more than one residual.
  void enter_residual(const char* name);
  void weigh_sums();
  void weigh_output(double values);
  void attention_output();
  void latent_projections();
  void plain_projections();
  void latent_up();
  void core();
  void linear_projections();
  void low_rank(const char* name, double rank, double outputs);
  void selection();
  void linear_core(bool backward);
  void scan(bool backward);
  void compressed_projections();
  void compressed_core(bool backward);
  void fused_core(bool backward);
  void indexer();
  void sparse_core(bool backward);
  void plain_core(bool backward);
  // Messages between context ranks for attention, and the copies that these need.
  void exchange_context();
  // Bytes of queries and outputs, keys, and values of a microbatch on this GPU.
  struct HeadBytes {
    double queries, outputs, keys, values;
  };
  [[nodiscard]] HeadBytes head_bytes() const;
  void gather_keys();
  void divide_heads(bool backward);
  void repeat_keys(const HeadBytes& repeated);
  void pass_keys_on(bool backward, int kernel);
  void mlp_block();
  struct Names {
    const char* first;
    const char* second;
    RecomputeGranularity activation = {};  // what makes it again
    RecomputeGranularity whole = {};       // what makes all of it again
  };
  void mlp(double tokens, double width, double ffn, double ranks, double batch, const Names& names);
  void dense_mlp();
  void moe_block();
  void moe();
  void routed_experts();
  void latent_projection();
  void expert_biases(double rows);
  void exchange_rows(bool in_fp8);
  void dispatch();
  // The first half of F's exchange: rows are copied out, sent, and sorted by expert.
  void send_to_experts();
  void patch_projection();
  void projector();
  void shared_experts();

  const Transformer& model_;
  const LayerContext& context_;
  const PassKind pass_;
  const double element_;
  const double hidden_;
  const double tokens_;
  const double divided_;
  const double ranks_;
  Mixer mixer_ = Mixer::kAttention;
  double mlp_size_ = 0;
  Work work_;
};

}  // namespace pipesim
