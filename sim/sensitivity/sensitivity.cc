#include "sim/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/sensitivity/what_ifs.h"

namespace pipesim {
namespace {

Outcome outcome_of(const Case& made, const Result& result) {
  return {metrics_of(*made.scenario, result)};
}

// The effects of all what-ifs and factors, each group of its factors together; evaluated at once,
// since most are the same passes at other costs.
class Effects {
 public:
  // Refused already, or one more case to simulate.
  void add(const WhatIf& what_if, Scenario scenario, const Answer& base, double factor) {
    Effect& effect = effects_.emplace_back(Effect{.what = what_if.name,
                                                  .key = what_if.key,
                                                  .factor = factor,
                                                  .applied = factor,
                                                  .from = {},
                                                  .to = {},
                                                  .outcome = {},
                                                  .refusal = {}});
    refused(effect, [&] {
      ValueChange change = what_if.multiply(scenario, base, factor);
      effect.from = std::move(change.from);
      effect.to = std::move(change.to);
      effect.applied = change.applied.value_or(factor);
      cases_.push_back(prepare_first(std::move(scenario)));
      effect_of_case_.push_back(effects_.size() - 1);
    });
  }

  std::vector<Effect> simulated(Reuse& reuse) && {
    const std::vector<Simulated> all = simulate_all(cases_, reuse);
    for (size_t i = 0; i < all.size(); ++i) {
      Effect& effect = effects_[effect_of_case_[i]];
      refused(effect, [&] { effect.outcome = outcome_of(cases_[i], all[i].get()); });
    }
    return std::move(effects_);
  }

 private:
  template <class Step>
  static void refused(Effect& effect, Step step) {
    try {
      step();
    } catch (const InputError& error) {
      effect.refusal = error.message();
    } catch (const InfeasibleError& error) {
      effect.refusal = error.what();
    }
  }

  std::vector<Effect> effects_;
  std::vector<Case> cases_;
  std::vector<size_t> effect_of_case_;
};

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
    const auto moved = [&](std::string_view name) {
      const auto now = (*effect.outcome)[name];
      const auto before = base[name];
      return now && before && *before > 0 ? distance(*now, *before) : 0;
    };
    size.throughput = std::max(size.throughput, moved("microbatches_per_second"));
    size.peak = std::max(size.peak, moved(base.peak()));
  }
  return size;
}

}  // namespace

Sensitivity sensitivity_of(const Case& made, std::span<const double> factors) {
  Scenario alone = *made.scenario;
  alone.schedules = {made.choice};
  Reuse reuse;
  const Answer base{made, simulate(made, nullptr, &reuse), {}};
  Sensitivity result{columns_of(made.choice), made.label, outcome_of(made, base.result), {}, {}};
  Effects all;
  for (const WhatIf& what_if : what_ifs()) {
    if (std::string reason = what_if.lacks(alone); !reason.empty()) {
      result.not_applicable.push_back({what_if.name, std::move(reason)});
      continue;
    }
    for (const double factor : factors) all.add(what_if, alone, base, factor);
  }
  const std::vector<Effect> effects = std::move(all).simulated(reuse);
  std::vector<std::span<const Effect>> groups;  // of one what-if
  for (size_t first = 0; first < effects.size(); first += factors.size()) {
    groups.push_back(std::span(effects).subspan(first, factors.size()));
  }
  std::ranges::stable_sort(groups, [&result](const auto& a, const auto& b) {
    return size_of(a, result.base) > size_of(b, result.base);
  });
  for (const auto& group : groups) {
    result.effects.insert(result.effects.end(), group.begin(), group.end());
  }
  return result;
}

}  // namespace pipesim
