#include <pipesim/sensitivity.h>
#include <sstream>

#include "library/errors.h"
#include "library/feasible.h"
#include "library/metrics.h"
#include "library/read_scenario.h"
#include "library/within.h"
#include "sim/sensitivity/report.h"

namespace pipesim {
namespace {

api::Effect public_effect(const Effect& effect) {
  api::Effect made{.what = std::string(effect.what),
                   .key = std::string(effect.key),
                   .factor = effect.factor,
                   .applied = effect.applied,
                   .from = effect.from,
                   .to = effect.to,
                   .runs = effect.outcome.has_value(),
                   .metrics = {},
                   .refusal = effect.refusal};
  if (effect.outcome) made.metrics = public_metrics(effect.outcome->metrics);
  return made;
}

api::Sensitivity public_sensitivity(const Sensitivity& of) {
  const auto& [schedule, options, recompute, offload, limit] = of.choice;
  api::Sensitivity made{.label = of.label,
                        .schedule = schedule,
                        .options = options,
                        .recompute = recompute,
                        .offload = offload,
                        .memory_limit = limit,
                        .base = public_metrics(of.base.metrics),
                        .effects = {},
                        .not_applicable = {}};
  for (const Effect& effect : of.effects) made.effects.push_back(public_effect(effect));
  for (const NotApplicable& each : of.not_applicable) {
    made.not_applicable.emplace_back(each.what, each.reason);
  }
  return made;
}

api::Sensitivities public_sensitivities(const std::vector<Sensitivity>& all,
                                        const std::vector<RefusedSchedule>& refused) {
  std::ostringstream json;
  write_sensitivity_json(json, all, PIPESIM_VERSION);
  api::Sensitivities made;
  made.json = json.str();
  made.csv = sensitivity_csv(all);
  for (const Sensitivity& each : all) {
    made.schedules.push_back(public_sensitivity(each));
    made.text += (made.text.empty() ? "" : "\n") + sensitivity_table(each);
  }
  for (const RefusedSchedule& each : refused) made.refused.push_back({each.label, each.reason});
  return made;
}

}  // namespace

api::Sensitivities api::sensitivity(const Scenario& scenario, const std::vector<double>& factors,
                                    const Watch& watch) {
  return watched(watch, [&] {
    for (const double factor : factors) within("factors", factor, kSensitivityFactors);
    const auto& read = scenario.read().scenario();
    std::vector<pipesim::Sensitivity> all;
    const auto refused = each_feasible(read, stop_of(watch), [&](const Case& made) {
      all.push_back(sensitivity_of(made, factors));
      if (watch.progress) watch.progress(all.size(), read->schedules.size());
    });
    check_stop();
    return public_sensitivities(all, refused);
  });
}

}  // namespace pipesim
