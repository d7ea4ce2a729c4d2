#include "models/stage_pair.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "models/layer_work.h"
#include "models/stage_passes.h"

namespace pipesim {
namespace {

Seconds backward_total(const LayerCost& cost, bool remade) {
  return cost.backward_where(remade).total() + cost.backward_weight.total();
}

// Share of the ranks' exchange of tokens on the way to the experts; the rest comes back.
double dispatch_share(const Work& work) {
  std::array<Bytes, 2> ways;  // they take turns
  size_t way = 0;
  for (const Collective& each : work.collectives) {
    if (each.group != Group::kExpert) continue;
    ways[way] += each.bytes;
    way = 1 - way;
  }
  return ways[0] > Bytes(0) ? ways[0] / (ways[0] + ways[1]) : 0.5;
}

// All of a pass but its exchange, in two: that of `feed`, and the rest.
struct Split {
  Seconds feed, rest;
};
Split split(const PassCost& pass, const PassCost& feed) {
  const Seconds all = pass.total() - pass.expert;
  const Seconds part = std::min(all, feed.total());
  return {part, all - part};
}

}  // namespace

StagePairs::StagePairs(const Transformer& model, const CostSetting& setting,
                       const Hardware& hardware, const LayerCosts& costs)
    : model_(model),
      costs_(costs),
      options_(setting.pair),
      recomputed_(setting.context.recomputed_layers) {
  options_.exchange_share = hardware.interconnect.exchange_share;
  for (const LayerKind kind : kLayerKinds) {
    exchanges_ = exchanges_ || costs[kind].forward.expert > Seconds(0);
  }
  if (!exchanges_) return;
  const KindCounts counts = count_all(model);
  for (const LayerKind kind : kLayerKinds) {
    const bool paired =
        kind == LayerKind::kMtp || std::ranges::find(kDecoderKinds, kind) != kDecoderKinds.end();
    if (!paired || counts[kind] == 0) continue;
    parts_[kind] = parts_of(kind, true, setting, hardware);
    others_[kind] = parts_[kind];
    if (!costs[kind].backward_of_others) continue;
    CostSetting others = setting;
    others.context = context_of_others(setting.context);
    others_[kind] = parts_of(kind, false, others, hardware);
  }
}

StagePairs::Parts StagePairs::parts_of(LayerKind kind, bool remade, const CostSetting& setting,
                                       const Hardware& hardware) const {
  const LayerCost& cost = costs_[kind];
  const PassCost& input = cost.backward_where(remade);
  const auto in = [&](PassKind pass, const PassCost& of) {
    return split(of, work_cost(feed_work(model_, kind, pass, setting.context), setting, hardware));
  };
  const Split f = in(PassKind::kF, cost.forward);
  const Split b = in(PassKind::kB, input);
  const Split w = in(PassKind::kW, cost.backward_weight);
  // In B what goes to the experts is the gradient of what came from them.
  const auto exchange = [&](PassKind pass, Seconds all) {
    const Seconds out = dispatch_share(layer_work(model_, kind, pass, setting.context)) * all;
    return std::pair(out, all - out);
  };
  const auto [sent, combined] = exchange(PassKind::kF, cost.forward.expert);
  const auto [gradient, back] = exchange(PassKind::kB, input.expert);
  return {{f.rest, sent, f.feed, combined}, {gradient, b.feed, back, b.rest, w.feed, w.rest}};
}

Seconds StagePairs::seconds(const StageLayers& forward, const StageLayers& backward) const {
  const StagePasses f = stage_passes(model_, forward, costs_);
  const StagePasses b = stage_passes(model_, backward, costs_, recomputed_);
  const Seconds sum = f.forward.total() + (b.backward_input.total() + b.backward_weight.total());
  if (!exchanges_) return sum;
  Seconds ends = sum;
  std::vector<ForwardParts> forwards;
  for (const LayerKind kind : layer_kinds(model_, forward)) {
    forwards.push_back(parts_[kind].forward);
    ends -= costs_[kind].forward.total();
  }
  std::vector<BackwardParts> backwards;
  int layer = 0;
  for (const LayerKind kind : layer_kinds(model_, backward)) {
    const bool in_decoder = layer < backward.layers;
    const bool remade = in_decoder ? recomputed_.has(layer) : recomputed_.all_behind();
    backwards.push_back((remade ? parts_ : others_)[kind].backward);
    ends -= backward_total(costs_[kind], remade);
    ++layer;
  }
  return std::max(Seconds(0), ends) + pair_times(forwards, backwards, options_).total;
}

}  // namespace pipesim
