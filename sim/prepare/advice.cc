#include "sim/prepare/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/balance.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim {
namespace {

bool given_by_device(const GivenCost& cost) {
  return std::ranges::any_of(
      std::array{cost.forward.size(), cost.backward_input.size(), cost.backward_weight.size(),
                 cost.overlapped.size(), cost.recompute.size(), cost.output_forward.size(),
                 cost.output_backward.size(), cost.input_forward.size(), cost.input_backward.size(),
                 cost.fixed.forward.size(), cost.fixed.backward_input.size(),
                 cost.fixed.backward_weight.size()},
      [](size_t length) { return length > 1; });
}

std::shared_ptr<const Scenario> scenario_in(const Outline& outline, const MemorySetting& setting) {
  const Scenario& scenario = *outline.scenario;
  auto changed = std::make_shared<Scenario>(scenario);
  Modelled& modelled = *changed->modelled;
  const int parts = outline.context->micro_batch_size / setting.context.micro_batch_size;
  divide_microbatches(*changed, parts, setting.context.micro_batch_size);
  changed->parallel.pipeline = setting.pipeline;
  modelled.context = setting.context;
  modelled.context.vocabulary_devices = vocabulary_devices(*changed);
  modelled.context.recompute = RecomputeGranularity::kNone;
  // Experts are divided like the rest, Megatron-LM's default.
  const LayerContext& before = scenario.modelled->context;
  if (before.expert_tensor == before.tensor)
    modelled.context.expert_tensor = setting.context.tensor;
  modelled.state = setting.state;
  return changed;
}

ScheduleChoice in_setting(const Outline& outline, const MemorySetting& setting) {
  ScheduleChoice choice = outline.choice;
  if (!choice.recompute) choice.recompute.emplace();
  if (setting.context.recompute != outline.context->recompute) {
    choice.recompute = Recompute{.granularity = setting.context.recompute};
  }
  return choice;
}

// Peak of the device that holds most; nothing where the layers do not fit, or no schedule is made.
std::optional<Bytes> peak_of(const Outline& outline) {
  std::optional<Layout> balanced;
  if (asks_for_balance(*outline.scenario)) {
    balanced = balanced_layout(outline);
    if (!balanced) return std::nullopt;
  }
  const Case made = batch_case(outline, balanced ? &*balanced : nullptr);
  const Evaluation result = evaluate(*make_program(made), made.problem);
  Bytes peak;
  for (size_t device = 0; device < made.memory->devices.size(); ++device) {
    peak = std::max(peak,
                    made.memory->devices[device].total() + result.devices[device].peak_activation);
  }
  return peak;
}

std::optional<Bytes> peak_in(const Outline& outline, const MemorySetting& setting) {
  try {
    auto scenario = scenario_in(outline, setting);
    const Modelled& modelled = *scenario->modelled;
    const ScheduleChoice choice = in_setting(outline, setting);
    const bool possible = fault_of(modelled.model, modelled.context).empty() &&
                          fault_of(modelled.model, modelled.context, modelled.state).empty();
    if (!possible ||
        (choice.program && choice.program->shape().devices != scenario->parallel.pipeline)) {
      return std::nullopt;
    }
    return peak_of(outline_of(std::move(scenario), choice));
  } catch (const InputError&) {
    return std::nullopt;  // the schedule, the split or a list of factors does not take these sizes
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

// Chunks that leave the device that offloads most.
int chunks_that_leave(const Program& program) {
  const std::vector<int> copied = program.copied_units();
  std::vector<int> counts(program.placement().devices(), 0);
  for (size_t vs = 0; vs < copied.size(); ++vs) {
    if (copied[vs] > 0) ++counts[program.placement().device(static_cast<int>(vs))];
  }
  return std::ranges::max(counts);
}

// The same plan as a schedule and what of it may leave: one that offloads by itself names no
// microbatches.
ScheduleChoice with_scope(ScheduleChoice choice, const Program& program) {
  if (offload_chunks_of(choice) > 0) return choice;
  const Schedule& schedule = schedule_of(choice);
  choice.name = schedule.without_offload;
  choice.options.insert(schedule.without_offload_options.begin(),
                        schedule.without_offload_options.end());
  choice.options.erase("offload_chunks");
  choice.options.erase("offload_plan");
  if (!choice.offload) choice.offload.emplace().where = choice.where;
  choice.offload->chunks = chunks_that_leave(program);
  return choice;
}

// Looks for less offload that hosts have room for.
class HostSearch {
 public:
  HostSearch(const Case& made, const Result& result, const Engine* engine)
      : made_(made),
        engine_(engine),
        choice_(with_scope(made.choice, *result.program)),
        named_(choice_.offload->microbatches),
        microbatches_(made.scenario->batch.microbatches),
        all_(static_cast<int>(numbers_of(named_, microbatches_).size())) {}

  std::optional<HostPlan> run() {
    constexpr int kMostInTurn = 8;
    ScheduleChoice kept = choice_;
    kept.offload.reset();
    least_ = simulate(case_of(kept), engine_).report.peak_activation;
    const int most = offload_chunks_of(choice_);
    for (int chunks = most; chunks > 0; chunks = chunks > kMostInTurn ? chunks / 2 : chunks - 1) {
      if (chunks < most) {
        choice_.offload->which.clear();
        choice_.offload->chunks = chunks;
        if (fits(all_)) break;  // fewer keep no less
      }
      for (int fit = 0, no_fit = all_; no_fit - fit > 1;) {
        const int count = fit + (no_fit - fit) / 2;
        (fits(count) ? fit : no_fit) = count;
      }
    }
    return std::move(best_);
  }

 private:
  [[nodiscard]] Case case_of(const ScheduleChoice& choice) const {
    return batch_case(outline_of(made_.scenario, choice), made_.layout ? &*made_.layout : nullptr);
  }

  // True if so many microbatches have room; notes the plan where devices keep less than before.
  bool fits(int count) {
    OffloadedMicrobatches& some = choice_.offload->microbatches;
    some = named_;
    if (count < all_) some.count = count;
    if (!some.listed.empty()) {
      some.listed = numbers_of(some, microbatches_);
      some.count.reset();
    }
    Case tried = case_of(choice_);
    const Result result = simulate(tried, engine_);
    if (!result.host->fits()) return false;
    const Bytes peak = result.report.peak_activation;
    if (peak < least_) {
      least_ = peak;
      best_ = HostPlan{std::move(tried), *result.host->node};
    }
    return true;
  }

  const Case& made_;
  const Engine* engine_;
  ScheduleChoice choice_;
  OffloadedMicrobatches named_;
  int microbatches_;
  int all_;
  Bytes least_;
  std::optional<HostPlan> best_;
};

// The limit with which a schedule that takes one keeps within the capacity.
std::optional<MemoryChange> limit_that_fits(const Outline& outline, const MemorySetting& now,
                                            Bytes capacity) {
  ScheduleChoice choice = outline.choice;
  const auto* total = std::get_if<TotalLimit>(&choice.memory_limit);
  const Bytes within = std::floor(capacity / kGiB * 100) / 100 * Bytes(kGiB);  // as it is printed
  if (choice.program || !schedule_of(choice).memory_limit) return std::nullopt;
  if (total != nullptr && total->bytes == within) return std::nullopt;
  choice.memory_limit = TotalLimit{within};
  try {
    const auto peak = peak_of(outline_of(outline.scenario, choice, outline.costs));
    if (!peak || *peak > capacity) return std::nullopt;
    return MemoryChange{fmt::format("memory_limit: {{total: {:.2f} GiB}}", within / kGiB), now,
                        *peak};
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<MemoryChange> change_that_fits(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const Modelled& modelled = *scenario.modelled;
  if (!modelled.capacity) return std::nullopt;
  const MemorySetting now{*outline.context, modelled.state, scenario.parallel.pipeline};
  if (auto limit = limit_that_fits(outline, now, *modelled.capacity)) return limit;
  return nearest_change(now, *modelled.capacity,
                        [&](const MemorySetting& setting) -> std::optional<Bytes> {
                          // Costs by device or stage say nothing of twice as many.
                          if (setting.pipeline != now.pipeline && given_by_device(scenario.cost))
                            return std::nullopt;
                          return peak_in(outline, setting);
                        });
}

std::optional<HostPlan> offload_that_fits(const Case& made, const Result& result,
                                          const Engine* engine) {
  return HostSearch(made, result, engine).run();
}

Advice advise(const Case& made, const Result& result, const Engine* engine) {
  Advice advice;
  if (result.fits == MemoryFit::kNo) advice.change = change_that_fits(made);
  if (result.host && !result.host->fits() && !result.program->memory_follows_order()) {
    advice.offload = offload_that_fits(made, result, engine);
  }
  return advice;
}

Answer answer(Case made, const Engine* engine, Detail detail) {
  Result result = simulate(made, engine, nullptr, detail);
  Advice advice = advise(made, result, engine);
  return {std::move(made), std::move(result), std::move(advice)};
}

}  // namespace pipesim
