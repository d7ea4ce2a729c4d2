#include "models/stage_cost.h"

#include <algorithm>

#include "models/layer_memory.h"

namespace pipesim {
namespace {

// How often the stage runs a layer of this kind.
int times_run(const Transformer& model, const StageLayers& stage, LayerKind kind) {
  const int more = kind == LayerKind::kOutput ? stage.mtp : 0;
  return count(model, stage, kind) + more;
}

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

// Where the framework scatters what tensor ranks hold alike, they gather it after the message.
Seconds gathering_seconds(const Transformer& model, const CostSetting& setting,
                          const Hardware& hardware) {
  const LayerContext& context = setting.context;
  if (!context.scatter_sends || context.sequence_parallel || context.tensor == 1) return {};
  const Bytes whole = 1.0 * context.tensor * message_bytes(model, context);
  return collective_seconds(
      hardware.interconnect, {CollectiveKind::kAllGather, Group::kTensor, whole},
      group_shape(setting, hardware.interconnect.gpus_per_node, Group::kTensor));
}

}  // namespace

StagePasses stage_passes(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs) {
  StagePasses sum;
  for (size_t i = 0; i < kSizeOf<LayerKind>; ++i) {
    const auto kind = static_cast<LayerKind>(i);
    const int times = times_run(model, stage, kind);
    if (times == 0) continue;
    const LayerCost& one = costs[kind];
    sum.forward += 1.0 * times * one.forward;
    sum.backward_input += 1.0 * times * one.backward_input;
    sum.backward_weight += 1.0 * times * one.backward_weight;
    if (is_layer(kind)) sum.recompute += 1.0 * times * one.forward;
  }
  return sum;
}

Seconds overlapped_seconds(const StagePasses& forward, const StagePasses& backward,
                           double exchange_share) {
  const Seconds exchange_f = forward.forward.expert;
  const Seconds exchange_b = backward.backward_input.expert + backward.backward_weight.expert;
  const Seconds f = forward.forward.total();
  const Seconds bw = backward.backward_input.total() + backward.backward_weight.total();
  const Seconds exchange = exchange_f + exchange_b;
  const Seconds compute = f + bw - exchange;
  return std::max({compute + exchange_share * exchange, exchange, f, bw});
}

Seconds message_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, int from, int to) {
  return sent_seconds(setting, hardware, from, to, message_bytes(model, setting.context)) +
         gathering_seconds(model, setting, hardware);
}

Seconds message_latency(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, int from, int to) {
  return sent_seconds(setting, hardware, from, to, Bytes(0)) +
         gathering_seconds(model, setting, hardware);
}

void fill_stage_seconds(const Transformer& model, const CostSetting& setting,
                        const Hardware& hardware, const Layout& layout, const Placement& place,
                        const LayerCosts& costs, std::span<StageCost> out) {
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageLayers& layers = layout.stages[place.model_stage(vs)];
    const StagePasses passes = stage_passes(model, layers, costs);
    StageCost& stage = out[vs];
    stage.forward = passes.forward.total();
    stage.backward_input = passes.backward_input.total();
    stage.backward_weight = passes.backward_weight.total();
    stage.overlapped = overlapped_seconds(passes, passes, hardware.interconnect.exchange_share);
    stage.recompute = passes.recompute.total();
    const int next = place.downstream(vs);
    const bool leaves = next >= 0 && place.device(next) != place.device(vs);
    stage.transfer =
        leaves ? message_seconds(model, setting, hardware, place.device(vs), place.device(next))
               : Seconds(0);
  }
}

}  // namespace pipesim
