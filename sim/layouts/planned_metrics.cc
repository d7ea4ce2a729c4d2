#include "sim/layouts/planned_metrics.h"

namespace pipesim {

std::array<std::optional<double>, kPlannedMetrics.size()> planned_metrics(
    const PlanQuestion& question, const Planned& planned, const PlannedBudget& budget) {
  const MemoryBand& peak_band = question.base.modelled->band;
  std::optional<double> contended, spread, low, high, on_host, days, hours, price;
  if (planned.contended) {
    contended = planned.contended->iteration.value();
    if (const auto& ensemble = planned.contended->ensemble) spread = ensemble->stddev.value();
  }
  if (const auto& band = question.base.band) {
    low = band->low * planned.expected().value();
    high = band->high * planned.expected().value();
  }
  if (planned.on_host > Bytes(0)) on_host = planned.on_host.value();
  if (budget.tokens) {
    const PlanBudget training = budget_of(question, planned, *budget.tokens);
    days = training.days;
    hours = training.gpu_hours;
    if (budget.price) price = training.gpu_hours * *budget.price;
  }
  return {planned.iteration.value(),
          contended,
          spread,
          low,
          high,
          planned.tokens_per_second_per_gpu,
          planned.mfu,
          planned.mfu_causal,
          planned.peak.value(),
          peak_band.low * planned.peak.value(),
          peak_band.high * planned.peak.value(),
          static_cast<double>(planned.fits),
          (question.limit() - planned.peak).value(),
          on_host,
          planned.bubble(),
          days,
          hours,
          price};
}

}  // namespace pipesim
