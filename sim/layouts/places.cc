// What a plan's places are worth.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/layouts/difference.h"
#include "sim/layouts/report.h"

namespace pipesim {
namespace {

std::string why_first(const Planned& first, const Planned& second) {
  const std::string reasons = causes_text(first, difference_of(first, second), 3);
  return fmt::format("number 2 takes {:.1f}% longer than the first{}{}",
                     100 * (second.expected() / first.expected() - 1), reasons.empty() ? "" : ": ",
                     reasons);
}

// Of the plan's rows, from 1; 0 is the baseline.
const Planned& row_of(const ClusterPlan& plan, size_t row) {
  return row == 0 ? plan.baseline->planned : plan.result.best.at(row - 1);
}

std::string name_of(const ClusterPlan& plan, size_t row) {
  const Planned& planned = row_of(plan, row);
  return fmt::format("{} ({}, {})", row == 0 ? "the baseline" : fmt::format("number {}", row),
                     label_of(planned.point), sizes_of(planned.point));
}

// "+1.2 s", "-3.4 GiB"; without a sign where nothing is left of it.
template <class Quantity>
std::string signed_text(Quantity quantity) {
  const bool less = quantity < Quantity(0);
  const std::string text = human(less ? Quantity(0) - quantity : quantity);
  return (text.starts_with("0 ") ? "" : less ? "-" : "+") + text;
}

}  // namespace

bool is_tied(const ClusterPlan& plan, const Planned& planned) {
  const auto& band = plan.question.base.band;
  if (!band || band->difference <= 0) return false;
  return planned.expected() <= (1 + band->difference) * plan.result.best.front().expected();
}

std::string baseline_text(const ClusterPlan& plan) {
  if (!plan.baseline || plan.result.best.empty()) return "";
  const Planned& baseline = plan.baseline->planned;
  const Planned& first = plan.result.best.front();
  const PlanDifference difference = difference_of(baseline, first);
  const std::string parts = parts_text(baseline, difference);
  const double more = first.expected() / baseline.expected() - 1;
  return fmt::format("{}: the first takes {:.1f}% {} than {}{}{}; memory {}\n",
                     plan.question.base.hardware->name, 100 * std::abs(more),
                     more > 0 ? "longer" : "less", name_of(plan, 0), parts.empty() ? "" : ": ",
                     parts, signed_text(difference.memory));
}

std::string what_ifs_text(const ClusterPlan& plan) {
  if (plan.result.best.empty()) return "";
  const Planned& first = *std::ranges::min_element(plan.result.best, {}, &Planned::rank_by_replay);
  std::string text;
  for (const PlanWhatIf& each : plan.what_ifs) {
    text += fmt::format("{}: {}: ", plan.question.base.hardware->name, each.change());
    if (each.best.empty()) {
      text += "nothing fits\n";
      continue;
    }
    const Planned& best = each.best.front();
    text +=
        fmt::format("iteration {:+.1f}%, tokens/s/GPU {:+.1f}% ({}, {})\n",
                    100 * (best.iteration / first.iteration - 1),
                    100 * (best.tokens_per_second_per_gpu / first.tokens_per_second_per_gpu - 1),
                    label_of(best.point), sizes_of(best.point));
  }
  return text;
}

std::string why_text(const ClusterPlan& plan, size_t than, size_t other) {
  const Planned& from = row_of(plan, than);
  const PlanDifference difference = difference_of(from, row_of(plan, other));
  std::string text = fmt::format("{} against {}: {} an iteration\n", name_of(plan, other),
                                 name_of(plan, than), signed_text(difference.total()));
  const auto line = [&](const char* name, Seconds seconds, auto causes) {
    text += fmt::format("  {:<14} {:>10}", name, signed_text(seconds));
    std::string made_of;
    for (const PlanShare share : causes) {
      std::string cause(kPlanShareNames[static_cast<size_t>(share)]);
      std::ranges::replace(cause, '_', ' ');
      made_of += fmt::format("{}{} {}", made_of.empty() ? "" : ", ", cause,
                             signed_text(difference.cause(share)));
    }
    text += fmt::format("  {}\n", made_of);
  };
  line("compute", difference.compute(), kComputeShares);
  line("communication", difference.communication(), kCommunicationShares);
  line("bubble", difference.bubble(), kBubbleShares);
  line("recompute", difference.recompute(), kRecomputeShares);
  text += fmt::format("  of which contention {}\n", signed_text(difference.contention));
  return text + fmt::format("  {:<14} {:>10}  of the GPU that holds most\n", "memory",
                            signed_text(difference.memory));
}

std::string places_text(const ClusterPlan& plan) {
  const auto& best = plan.result.best;
  if (best.size() < 2) return "";
  const std::string& cluster = plan.question.base.hardware->name;
  std::string text = fmt::format("{}: {}\n", cluster, why_first(best[0], best[1]));
  const auto& band = plan.question.base.band;
  if (!band || band->difference <= 0) return text;
  const auto alike =
      std::ranges::find_if_not(best, [&](const Planned& each) { return is_tied(plan, each); }) -
      best.begin();
  const std::string runs_differ =
      fmt::format("two measured runs of one group differ by up to {:.0f}% in how far off they are",
                  100 * band->difference);
  if (alike < 2)
    return text + fmt::format("{}: the first is told apart: {}\n", cluster, runs_differ);
  return text +
         fmt::format("{}: places 1 to {} cannot be told apart: {}\n", cluster, alike, runs_differ);
}

}  // namespace pipesim
