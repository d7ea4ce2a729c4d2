#include "sim/scenario/modelled.h"

#include <fmt/format.h>
#include <utility>

#include "models/layer_work.h"
#include "models/redistributed.h"

namespace pipesim {
namespace {

Layout split(const Modelled& modelled, const Placement& placement, const Layout* balanced) {
  const Transformer& model = modelled.model;
  switch (modelled.split.way) {
    case LayerSplit::Way::kListed:
      return listed_layout(model, modelled.split.listed);
    case LayerSplit::Way::kString:
      return parse_megatron_layout(model, modelled.split.text);
    case LayerSplit::Way::kBalanced:
      if (balanced != nullptr) return *balanced;
      return balance(model, placement.model_stages(), weights_by_work(modelled));
    case LayerSplit::Way::kRedistributed:
      if (placement.model_stages() != placement.devices()) {
        throw InfeasibleError(
            "'redistributed' has one stage a device: 'balance: auto' splits several");
      }
      return redistributed_layout(model, modelled.context.seq_length, placement.devices());
    case LayerSplit::Way::kPlanned:
      return modelled.split.planned;
    case LayerSplit::Way::kEven:
      break;
  }
  return even_layout(model, placement, modelled.split.even);
}

}  // namespace

Layout layout_of(const Modelled& modelled, const Placement& placement, const std::string& schedule,
                 const Layout* balanced) {
  try {
    Layout layout = split(modelled, placement, balanced);
    const bool several = placement.virtual_stages() > placement.devices();
    const std::string fault = fault_of(modelled.model, layout, several);
    const bool complete = std::cmp_equal(layout.stages.size(), placement.model_stages());
    if (complete && fault.empty()) return layout;
    if (!fault.empty() && (complete || several)) throw InfeasibleError(fault);
    throw InfeasibleError(fmt::format(
        "{} stages, but {} has {}{}", layout.stages.size(), schedule, placement.model_stages(),
        modelled.model.cross ? ""
                             : "; 'balance: auto' in its place finds the layers of any schedule"));
  } catch (const InfeasibleError& error) {
    throw InputError(modelled.split.where, error.what());
  }
}

LayerSeconds weights_by_work(const Modelled& modelled) {
  EnumArray<LayerKind, Seconds> of{};
  const KindCounts counts = count_all(modelled.model);
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    double sum = 0;
    for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
      sum += flops(layer_work(modelled.model, kind, pass, modelled.context)).value();
    }
    of[kind] = Seconds(sum);
  }
  return layer_seconds(modelled.model, of);
}

}  // namespace pipesim
