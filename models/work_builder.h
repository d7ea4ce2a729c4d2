// Builds the work of one pass of a layer, part by part: the inside of models/layer_work.h.
#pragma once

#include "models/layer_context.h"
#include "models/transformer.h"
#include "models/work.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// A part knows what it does in each pass. Requires fault_of(model, context) to be empty; keeps
// references to both.
class WorkBuilder {
 public:
  WorkBuilder(const Transformer& model, PassKind pass, const LayerContext& context)
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
  static constexpr double kElement = 2;  // bytes of bf16

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
  // A kernel of F that B runs again under pointwise recomputation.
  void again(double bytes);
  // Before a linear layer, which is what pointwise recomputation makes again.
  void norm(double tokens, double width, bool before_linear = true);
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

}  // namespace pipesim
