#include "sim/prepare/balance.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/balance.h"
#include "sim/case/program.h"
#include "sim/execution/evaluate.h"
#include "sim/prepare/faster_split.h"
#include "sim/prepare/memory_room.h"
#include "sim/prepare/microbatch_order.h"

namespace pipesim {
namespace {

class Balancer {
 public:
  explicit Balancer(const Outline& outline)
      : outline_(outline),
        model_(outline.scenario->modelled->model),
        weights_(layer_weights(outline)),
        capacity_(outline.scenario->modelled->capacity) {
    const auto* total = std::get_if<TotalLimit>(&outline.choice.memory_limit);
    if (total != nullptr) capacity_ = std::min(total->bytes, capacity_.value_or(total->bytes));
  }

  std::optional<Layout> run() {
    layout_ = balance(model_, outline_.placement, weights_);
    if (!capacity_) return layout_;
    MemoryRoom room(outline_, *capacity_);
    // The first split that is found fits, unless the order of passes follows the split or copies
    // make other moments.
    constexpr int kRounds = 24;
    for (int round = 0; round < kRounds; ++round) {
      if (plan_fits(room, round > 0)) return layout_;
      const Layout before = layout_;
      try {
        layout_ = balance(model_, outline_.placement, weights_, &room);
      } catch (const InfeasibleError&) {
        return std::nullopt;
      }
      if (layout_ == before) return std::nullopt;  // refused for what no split changes
    }
    return std::nullopt;
  }

 private:
  // A case of the layout, and its program.
  struct Planned {
    explicit Planned(const Outline& outline, const Layout& layout)
        : made(batch_case(outline, &layout)), program(make_program(made)) {}
    Case made;
    std::shared_ptr<const Program> program;
  };

  // True if the schedule's plan for the layout fits. If not, `room` learns what the devices hold. A
  // split found with that knowledge may still hold more; the excess is then taken from the room.
  bool plan_fits(MemoryRoom& room, bool known) {
    bool fits = true;
    const Planned planned = [&] {
      try {
        return Planned(outline_, layout_);
      } catch (const InfeasibleError&) {  // its memory limit; what it holds is seen without
        fits = false;
        Outline unlimited = outline_;
        unlimited.choice.memory_limit = std::monostate();
        return Planned(unlimited, layout_);
      }
    }();
    const MemoryEstimate& memory = *planned.made.memory;
    if (!fits) limit_by(memory, room);
    room.observe(*planned.program);
    const Evaluation result = evaluate(*planned.program, planned.made.problem);
    for (int device = 0; device < outline_.placement.devices(); ++device) {
      const Bytes peak = memory.devices[device].total() + result.devices[device].peak_activation;
      fits = fits && peak <= *capacity_;
      if (known && peak > *capacity_) room.take_away(device, peak - *capacity_);
      // Copies to the host make room that passes do not show.
      if (!known && !planned.program->memory_follows_order()) {
        const auto chunks = stages_of(layout_, outline_.placement, device);
        room.take_away(device, peak - room.peak(device, chunks));
      }
    }
    return fits;
  }

  // One limit on activations serves all devices: what the one that holds most beside leaves.
  void limit_by(const MemoryEstimate& memory, MemoryRoom& room) const {
    if (!std::holds_alternative<TotalLimit>(outline_.choice.memory_limit)) return;
    Bytes beside;
    for (const DeviceMemory& device : memory.devices) beside = std::max(beside, device.total());
    room.limit(*capacity_ - beside);
  }

  const Outline& outline_;
  const Transformer& model_;
  LayerSeconds weights_;
  std::optional<Bytes> capacity_;
  Layout layout_;
};

}  // namespace

LayerSeconds layer_weights(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const Modelled& modelled = *scenario.modelled;
  if (!outline.setting) return weights_by_work(modelled);
  const LayerCosts& costs = *outline.costs;
  const int recomputed = recompute_chunks_of(outline.choice);
  const double again = recomputed > 0 && recomputed == outline.placement.chunks() ? 1 : 0;
  EnumArray<LayerKind, Seconds> of{};
  for (const LayerKind kind : kLayerKinds) {
    const LayerCost& cost = costs[kind];
    const double forwards = is_layer(kind) ? 1 + again : 1;
    of[kind] = forwards * cost.forward.total() + cost.backward_input.total() +
               cost.backward_weight.total();
  }
  return layer_seconds(modelled.model, of);
}

std::optional<Layout> balanced_layout(const Outline& outline) {
  const std::optional<Layout> found = Balancer(outline).run();
  if (found) return faster_split(outline, *found).value_or(*found);
  if (std::holds_alternative<TotalLimit>(outline.choice.memory_limit)) return std::nullopt;
  // Where the order of passes follows the split, another one may hold less.
  const Layout fastest =
      balance(outline.scenario->modelled->model, outline.placement, layer_weights(outline));
  if (has_fixed_order(batch_case(outline, &fastest))) return std::nullopt;
  return faster_split(outline, fastest);
}

}  // namespace pipesim
