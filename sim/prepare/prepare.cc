#include "sim/prepare/prepare.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "sim/case/make_case.h"
#include "sim/core/text.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/automatic_offload.h"
#include "sim/prepare/balance.h"
#include "sim/prepare/chosen_slices.h"
#include "sim/prepare/microbatch_order.h"

namespace pipesim {
namespace {

[[noreturn]] void refuse_unbalanced(const Outline& outline) {
  const Modelled& modelled = *outline.scenario->modelled;
  Bytes within = modelled.capacity.value_or(Bytes(std::numeric_limits<double>::infinity()));
  if (const auto* total = std::get_if<TotalLimit>(&outline.choice.memory_limit)) {
    within = std::min(within, total->bytes);
  }
  const auto change = change_that_fits(outline);
  throw InfeasibleError(fmt::format(
      "{}: no split of {}'s layers over {} stages was found that fits in {}; nearest change: {}",
      label_of(outline.choice), modelled.model.name, outline.placement.model_stages(),
      human(within), change ? fmt::format("{} ({})", change->words, human(change->peak)) : "none"));
}

}  // namespace

Case prepare(std::shared_ptr<const Scenario> scenario, const ScheduleChoice& choice) {
  Outline outline = outline_of(std::move(scenario), choice);
  std::optional<Layout> balanced;
  if (asks_for_balance(*outline.scenario)) {
    balanced = balanced_layout(outline);
    if (!balanced) refuse_unbalanced(outline);
  }
  const Layout* layout = balanced ? &*balanced : nullptr;
  if (outline.choice.slice_units) outline.choice.slices = choose_slices(outline, layout);
  if (outline.choice.equal_slices) outline.choice.slices = equal_slices(outline, layout);
  const auto& offload = outline.choice.offload;
  if (!offload || !offload->automatic || offload->chunks) return batch_case(outline, layout);
  ChosenOffload chosen = choose_offload(outline, layout);
  outline.choice = std::move(chosen.choice);
  Case made = batch_case(std::move(outline), layout);
  made.offload_reason = std::move(chosen.reason);
  return made;
}

Case prepare_first(Scenario scenario) {
  const auto shared = std::make_shared<const Scenario>(std::move(scenario));
  return prepare(shared, shared->schedules.front());
}

std::vector<Prepared> prepare_all(const std::shared_ptr<const Scenario>& scenario) {
  std::vector<Prepared> all;
  std::vector<ScheduleChoice> choices;
  for (const ScheduleChoice& choice : scenario->schedules) {
    Prepared& one = all.emplace_back();
    try {
      one.made = prepare(scenario, choice);
    } catch (const InputError&) {
      one.error = std::current_exception();
    } catch (const InfeasibleError&) {
      one.error = std::current_exception();
    }
    one.choice = one.made ? one.made->choice : choice;
    choices.push_back(one.choice);
  }
  const std::vector<std::string> apart = tell_apart(choices);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].label = label_of(choices[i], apart[i]);
    if (all[i].made) all[i].made->label = all[i].label;
  }
  return all;
}

}  // namespace pipesim
