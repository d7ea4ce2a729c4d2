#include "models/stage_cost.h"

#include <algorithm>
#include <vector>

#include "models/alike.h"
#include "models/layer_memory.h"
#include "models/stage_pair.h"

namespace pipesim {
namespace {

Seconds sent_seconds(const CostSetting& setting, const Hardware& hardware, int from, int to,
                     Bytes bytes) {
  const LayerContext& context = setting.context;
  const int ranks = context.tensor * context.context * setting.state.data;
  const int node = hardware.interconnect.gpus_per_node;
  // All ranks of both devices on one node, or the slowest of them crosses.
  const bool near =
      std::min(from, to) * ranks / node == ((std::max(from, to) + 1) * ranks - 1) / node;
  return collective_seconds(hardware.interconnect,
                            {CollectiveKind::kSendReceive, Group::kTensor, bytes},
                            {2, near ? 2 : 1});
}

struct BackwardSeconds {
  Seconds input, weight;
};

// Launched as one pass, B and W wait for the host together, each for its share.
BackwardSeconds backward_seconds(const StagePasses& passes, bool fused) {
  const PassCost& input = passes.backward_input;
  const PassCost& weight = passes.backward_weight;
  if (!fused) return {input.total(), weight.total()};
  const Seconds gpu = input.on_gpu() + weight.on_gpu();
  const Seconds host = input.host + weight.host;
  if (host <= gpu || gpu <= Seconds(0)) return {input.on_gpu(), weight.on_gpu()};
  return {host / gpu * input.on_gpu(), host / gpu * weight.on_gpu()};
}

// Where the framework scatters what tensor ranks hold alike, they gather it after the message.
Seconds gathering_seconds(const Transformer& model, const CostSetting& setting,
                          const Hardware& hardware, const StageLayers& sender) {
  const LayerContext& context = setting.context;
  if (!context.scatter_sends || context.sequence_parallel || context.tensor == 1) return {};
  const Bytes whole = 1.0 * context.tensor * message_bytes(model, context, sender);
  return collective_seconds(
      hardware.interconnect, {CollectiveKind::kAllGather, Group::kTensor, whole},
      group_shape(setting, hardware.interconnect.gpus_per_node, Group::kTensor));
}

}  // namespace

Seconds message_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const StageLayers& sender, int from, int to) {
  return sent_seconds(setting, hardware, from, to, message_bytes(model, setting.context, sender)) +
         gathering_seconds(model, setting, hardware, sender);
}

Seconds message_latency(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const StageLayers& sender, int from, int to) {
  return sent_seconds(setting, hardware, from, to, Bytes(0)) +
         gathering_seconds(model, setting, hardware, sender);
}

void fill_stage_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const Layout& layout, const Placement& place,
                        const LayerCosts& costs, std::span<StageCost> out) {
  const StagePairs pairs(model, setting, hardware, costs);
  const std::vector<int> alike = first_alike(model, layout);
  std::vector<int> filled(alike.size(), -1);  // by the first one alike: a virtual stage
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageLayers& layers = layout.stages[place.model_stage(vs)];
    StageCost& stage = out[vs];
    int& known = filled[alike[place.model_stage(vs)]];
    if (known >= 0) {
      const StageCost& before = out[known];
      stage.forward = before.forward;
      stage.backward_input = before.backward_input;
      stage.backward_weight = before.backward_weight;
      stage.overlapped = before.overlapped;
      stage.recompute = before.recompute;
    } else {
      const StagePasses passes =
          stage_passes(model, layers, costs, setting.context.recomputed_layers);
      stage.forward = passes.forward.total();
      const BackwardSeconds backward = backward_seconds(passes, setting.fused_backward);
      stage.backward_input = backward.input;
      stage.backward_weight = backward.weight;
      stage.overlapped = pairs.seconds(layers, layers);
      stage.recompute = passes.recompute.total();
      known = vs;
    }
    const int next = place.downstream(vs);
    const bool leaves = next >= 0 && place.device(next) != place.device(vs);
    stage.transfer = leaves ? message_seconds(model, setting, hardware, layers, place.device(vs),
                                              place.device(next))
                            : Seconds(0);
  }
}

}  // namespace pipesim
