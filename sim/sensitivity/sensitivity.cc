#include "sim/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/sensitivity/what_ifs.h"

namespace pipesim {
namespace {

Outcome outcome_of(const Case& made, const Result& result) {
  const Scenario& scenario = *made.scenario;
  const Report& report = result.report;
  Outcome outcome;
  outcome.iteration = report.iteration;
  outcome.microbatches_per_second = scenario.batch.microbatches / report.iteration.value();
  outcome.bubble_rate = report.bubble_rate;
  if (knows_memory(scenario)) outcome.peak_activation = report.peak_activation;
  outcome.peak_memory = report.peak_memory;
  outcome.fits = result.fits;
  return outcome;
}

// The message without its place, which is one of the scenario as it was written.
std::string reason_of(const InputError& error) {
  const Location& where = error.where();
  std::string text = error.what();
  text.resize(std::min(text.size(), text.find('\n')));
  const std::string place = where.file + ":";
  if (!text.starts_with(place)) return text;
  const size_t start = text.find(": ", place.size() - 1);
  return start == std::string::npos ? text : text.substr(start + 2);
}

Effect effect_of(const WhatIf& what_if, Scenario scenario, const Answer& base, double factor,
                 Reuse& reuse) {
  Effect effect{.what = what_if.name,
                .key = what_if.key,
                .factor = factor,
                .applied = factor,
                .from = {},
                .to = {},
                .outcome = {},
                .refusal = {}};
  try {
    ValueChange change = what_if.multiply(scenario, base, factor);
    effect.from = std::move(change.from);
    effect.to = std::move(change.to);
    effect.applied = change.applied.value_or(factor);
    const Case made = prepare_first(std::move(scenario));
    effect.outcome = outcome_of(made, simulate(made, nullptr, &reuse));
  } catch (const InputError& error) {
    effect.refusal = reason_of(error);
  } catch (const InfeasibleError& error) {
    effect.refusal = error.what();
  }
  return effect;
}

// How far the values of one what-if move throughput and peak, as logarithms of ratios.
struct Size {
  double throughput = 0;
  double peak = 0;
  auto operator<=>(const Size&) const = default;
};

Size size_of(std::span<const Effect> effects, const Outcome& base) {
  Size size;
  for (const Effect& effect : effects) {
    if (!effect.outcome) continue;
    // A difference of rounding is none.
    const auto distance = [](double now, double before) {
      const double ratio = std::abs(std::log(now / before));
      return ratio < 1e-9 ? 0 : ratio;
    };
    size.throughput = std::max(size.throughput, distance(effect.outcome->microbatches_per_second,
                                                         base.microbatches_per_second));
    const auto before = base.peak();
    const auto now = effect.outcome->peak();
    if (before && now && *before > Bytes(0)) {
      size.peak = std::max(size.peak, distance(now->value(), before->value()));
    }
  }
  return size;
}

}  // namespace

Sensitivity sensitivity_of(const Case& made, std::span<const double> factors) {
  Scenario alone = *made.scenario;
  alone.schedules = {made.choice};
  Reuse reuse;
  const Answer base{made, simulate(made, nullptr, &reuse), {}};
  Sensitivity result{made.label, outcome_of(made, base.result), {}, {}};
  std::vector<std::vector<Effect>> groups;
  for (const WhatIf& what_if : what_ifs()) {
    if (std::string reason = what_if.lacks(alone); !reason.empty()) {
      result.not_applicable.push_back({what_if.name, std::move(reason)});
      continue;
    }
    auto& group = groups.emplace_back();
    for (const double factor : factors) {
      group.push_back(effect_of(what_if, alone, base, factor, reuse));
    }
  }
  std::ranges::stable_sort(groups, [&result](const auto& a, const auto& b) {
    return size_of(a, result.base) > size_of(b, result.base);
  });
  for (auto& group : groups) {
    std::ranges::move(group, std::back_inserter(result.effects));
  }
  return result;
}

}  // namespace pipesim
