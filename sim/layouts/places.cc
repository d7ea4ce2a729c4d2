// How far a plan's places can be trusted.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>

#include "sim/core/text.h"
#include "sim/layouts/difference.h"
#include "sim/layouts/report.h"
#include "sim/read/band.h"
#include "sim/report/text/difference.h"

namespace pipesim {
namespace {

std::string why_first(const Planned& first, const Planned& second) {
  const std::string reasons = causes_text(first, difference_of(first, second), 3);
  return fmt::format("number 2 takes {:.1f}% longer than the first{}{}",
                     100 * (second.expected() / first.expected() - 1), reasons.empty() ? "" : ": ",
                     reasons);
}

// The plan's row, counted from 1; 0 is the baseline.
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

// True where both divide the GPUs and the batch alike.
bool differ_by_schedule(const PlanPoint& a, const PlanPoint& b) {
  const auto division = [](const PlanPoint& of) {
    return std::tuple(of.tensor, of.context, of.expert, of.expert_tensor, of.pipeline, of.data,
                      of.micro_batch, of.sharding, of.exchange, of.dispatcher);
  };
  return division(a) == division(b);
}

// From which differences on schedules and layouts are told apart; empty without a band.
std::string differences_text(const Scenario& base) {
  std::string text;
  if (const auto schedules = read_difference_band(base)) {
    text = fmt::format("schedules of one layout are told apart from {:.1f}% on ({})",
                       100 * schedules->least_told_apart(), pairs_text(*schedules));
  }
  if (!base.band || base.band->difference <= 0) return text;
  return text + fmt::format(
                    "{} from {:.0f}% on (two measured runs of one group differ by up to "
                    "that in how far off they are)",
                    text.empty() ? "layouts are told apart" : ", layouts",
                    100 * base.band->difference);
}

}  // namespace

bool is_tied(const ClusterPlan& plan, const Planned& planned) {
  const Planned& first = plan.result.best.front();
  const double ratio = planned.expected() / first.expected();
  const Scenario& base = plan.question.base;
  const auto schedules = read_difference_band(base);
  if (schedules && differ_by_schedule(first.point, planned.point)) return schedules->tied(ratio);
  return base.band && base.band->difference > 0 && ratio <= 1 + base.band->difference;
}

std::string tied_places(const ClusterPlan& plan) {
  const auto& best = plan.result.best;
  std::vector<std::string> runs;
  for (size_t i = 0; i < best.size(); ++i) {
    if (!is_tied(plan, best[i])) continue;
    const size_t from = i;
    while (i + 1 < best.size() && is_tied(plan, best[i + 1])) ++i;
    runs.push_back(from == i ? fmt::format("{}", i + 1) : fmt::format("{} to {}", from + 1, i + 1));
  }
  return fmt::format("{}", fmt::join(runs, ", "));
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
  const std::string differences = differences_text(plan.question.base);
  if (differences.empty()) return text;
  const bool alone = std::none_of(best.begin() + 1, best.end(),
                                  [&](const Planned& each) { return is_tied(plan, each); });
  return text + fmt::format("{}: {}: {}\n", cluster,
                            alone ? "the first is told apart"
                                  : "places " + tied_places(plan) + " cannot be told apart",
                            differences);
}

}  // namespace pipesim
