#include "validate/calibration/replay_layer.h"

#include <stdexcept>
#include <string>

#include "sim/core/error.h"

namespace pipesim::calibration {
namespace {

std::string why_not(const Transformer& model, const LayerContext& context) {
  if (model.experts) return "a mixture of experts";
  if (model.latent) return "latent attention";
  if (!model.layer_pattern.empty() || model.output_gate) return "layers of more than one kind";
  if (model.encoder) return "an encoder in front";
  if (model.mtp_layers > 0) return "modules that predict further tokens";
  if (!context.flash_attention || !context.causal) return "attention that is not fused and causal";
  if (context.context > 1) return "a sequence that is divided over ranks";
  if (context.precision != Precision::kBf16) return "linear layers in fp8";
  if (context.recompute.of_modules()) return "layers of which a part is computed again";
  return "";
}

}  // namespace

LayerSlice slice_of(const Case& made) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.modelled) {
    throw InfeasibleError("a replay runs the layers of a model, and this scenario has none");
  }
  const Transformer& model = scenario.modelled->model;
  const LayerContext& context = *made.context;
  if (const std::string reason = why_not(model, context); !reason.empty()) {
    throw InfeasibleError("there are no kernels to replay " + reason);
  }
  const LayerShape shape{.name = model.name,
                         .hidden = model.hidden_size,
                         .feed_forward = model.ffn_hidden_size,
                         .heads = model.num_attention_heads,
                         .kv_heads = model.num_query_groups,
                         .head_dim = model.kv_channels,
                         .vocabulary = model.vocab_size,
                         .gated = model.gated_mlp,
                         .rms_norm = model.norm == Norm::kRmsNorm,
                         .dropout = context.dropout};
  LayerSlice slice{shape, context.tensor, context.micro_batch_size, context.seq_length};
  try {
    slice.require_divisible();
  } catch (const std::invalid_argument& error) {
    throw InfeasibleError(std::string("there are no kernels to replay ") + error.what());
  }
  return slice;
}

}  // namespace pipesim::calibration
