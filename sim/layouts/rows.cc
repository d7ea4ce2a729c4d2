#include "sim/layouts/rows.h"

#include <algorithm>
#include <memory>

#include "sim/layouts/shortlist.h"

namespace pipesim {
namespace {

void add_counts(const PlanCounts& of, PlanCounts& to) {
  to.points += of.points;
  to.refused += of.refused;
  to.too_large += of.too_large;
  to.too_slow += of.too_slow;
  to.repeated += of.repeated;
  to.evaluated += of.evaluated;
  to.unfit += of.unfit;
  to.tight += of.tight;
  to.faster_with_memory += of.faster_with_memory;
}

// Ideas, and of the fastest those that stand for none.
std::vector<Planned> rows_of(PlanResult& found) {
  std::vector<Planned> rows = std::move(found.ideas);
  for (Planned& each : found.best) {
    if (std::ranges::count(rows, each.id, &Planned::id) == 0) rows.push_back(std::move(each));
  }
  return rows;
}

void add_rows_of(const PlanQuestion& other, const PlanOptions& asked, ClusterPlan& plan) {
  PlanOptions options = asked;
  if (options.ideas) options.ideas = other.axes.runs_on;
  PlanResult found = pipesim::plan(other, options);
  std::vector<Planned> rows = rows_of(found);
  if (options.ideas && options.best == 0 && rows.size() > 1) rows.resize(1);
  const auto question = std::make_shared<const PlanQuestion>(other);
  for (Planned& row : rows) {
    row.ideas.clear();
    row.asked = question;
    plan.result.best.push_back(std::move(row));
  }
  add_counts(found.counts, plan.result.counts);
  plan.result.stopped = plan.result.stopped || found.stopped;
}

// An idea is worth its time against the fastest of all frameworks.
void drop_slow_ideas(std::vector<Planned>& rows) {
  const Seconds fastest = rows.front().iteration;
  for (Planned& row : rows) {
    std::erase_if(row.ideas, [&](PlanIdea idea) {
      if (idea == PlanIdea::kBeyond) return row.iteration >= fastest;
      const double most = idea == PlanIdea::kSimplest ? kNearlyAsFast : kMostSlower;
      return row.iteration > most * fastest;
    });
  }
}

// A row that stands for nothing, beside the first and the first of its framework.
void drop_idle_rows(std::vector<Planned>& rows) {
  std::erase_if(rows, [](const Planned& row) { return row.idea.empty(); });
}

}  // namespace

void search_rows(ClusterPlan& plan, const PlanOptions& options) {
  plan.result = pipesim::plan(plan.question, options);
  std::vector<Planned> rows = rows_of(plan.result);
  plan.result.best = std::move(rows);
  for (const PlanQuestion& other : plan.others) {
    if (plan.result.stopped) break;
    add_rows_of(other, options, plan);
  }
  auto& best = plan.result.best;
  if (best.empty()) return;
  for (Planned& row : best) row.rank_by_replay = 0;  // among other rows
  order_rows(best);
  if (options.ideas) {
    drop_slow_ideas(best);
    order_rows(best);
    if (options.best == 0) drop_idle_rows(best);
  }
  const auto most = static_cast<size_t>(options.best);
  if (most > 0 && best.size() > most) best.resize(most);
  for (size_t i = 0; i < best.size(); ++i) best[i].rank_by_replay = i + 1;
}

void order_rows(std::vector<Planned>& rows) {
  rank_by_contention(rows);
  name_ideas(rows);
}

}  // namespace pipesim
