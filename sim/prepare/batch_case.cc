#include "sim/prepare/batch_case.h"

#include <memory>
#include <utility>

#include "sim/case/make_case.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim {
namespace {

Case redrawn(const Case& made, std::uint64_t seed) {
  Scenario scenario = *made.scenario;
  draw_batch(scenario, seed);
  const auto shared = std::make_shared<const Scenario>(std::move(scenario));
  return batch_case(outline_of(shared, made.choice), made.layout ? &*made.layout : nullptr);
}

}  // namespace

Case batch_case(Outline outline, const Layout* balanced) {
  Case made = make_case(std::move(outline), balanced);
  const auto& unequal = made.scenario->batch.unequal;
  if (!unequal) return made;
  order_microbatches(made, unequal->order);
  if (unequal->draw.runs > 1) made.redrawn = redrawn;
  return made;
}

}  // namespace pipesim
