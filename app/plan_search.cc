#include "app/plan_search.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/layouts/baseline.h"
#include "sim/layouts/report.h"
#include "sim/layouts/rows.h"

namespace pipesim {
namespace {

// One row more at a time than there are cores: before its ensemble of runs each has one alone.
void run_again(ClusterPlan& plan, size_t count, const PlanWatch& watch) {
  auto& best = plan.result.best;
  watch.again(count);
  const int cores = available_threads();
  ThreadTeam(std::min(static_cast<int>(count), cores + 1)).run(count, [&](size_t i) {
    const StopOn stopping(watch.unwanted);
    if (!watch.stop()) best[i].contended = with_contention(question_of(plan, best[i]), best[i]);
  });
}

// Adds the baseline and the what-ifs that the command asks for.
void add_comparisons(const PlanCommand& command, const PlanAsked& asked, const PlanOptions& options,
                     ClusterPlan& plan) {
  if (!plan.baseline && command.baseline == "published") {
    if (auto published = published_layout(plan.question, options.stop)) {
      plan.baseline =
          Baseline{.planned = std::move(published->planned), .run = std::move(published->run)};
    }
  }
  if (!plan.baseline && command.baseline != "none") {
    if (auto usual = usual_layout(plan.question)) plan.baseline = Baseline{std::move(*usual)};
  }
  const bool contended = std::ranges::all_of(
      plan.result.best, [](const Planned& each) { return each.contended.has_value(); });
  if (contended && plan.baseline) {
    Baseline& baseline = *plan.baseline;
    baseline.planned.contended = baseline.own ? with_contention(*baseline.own)
                                              : with_contention(plan.question, baseline.planned);
  }
  if (!command.what_if) return;
  plan.what_ifs = asked.changes.empty()
                      ? plan_what_ifs(plan.question, options, command.factors)
                      : plan_named_what_ifs(plan.question, options, asked.changes);
}

}  // namespace

void search_plan(const PlanCommand& command, const PlanAsked& asked, const PlanWatch& watch,
                 ClusterPlan& plan) {
  const StopOn stopping(watch.unwanted);
  PlanOptions options = asked_options(command, plan);
  options.stop = watch.stop;
  options.progress = watch.progress;
  search_rows(plan, options);
  auto& best = plan.result.best;
  const size_t again = std::min(best.size(), static_cast<size_t>(command.contention));
  if (again > 0) run_again(plan, again, watch);
  order_rows(best);
  if (!best.empty() && !watch.stop()) add_comparisons(command, asked, options, plan);
  plan.result.stopped = plan.result.stopped || watch.stop();
}

void nothing_fits(const std::vector<ClusterPlan>& plans, const Location& asked) {
  const HardwareCatalog catalog = read_all_hardware(asked);
  std::string text;
  for (const ClusterPlan& plan : plans) {
    text += fmt::format("{}{}", text.empty() ? "" : "\n", no_fit_text(plan, catalog.clusters));
  }
  throw InfeasibleError(text);
}

}  // namespace pipesim
