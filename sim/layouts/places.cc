// What a plan's places are worth.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <vector>

#include "sim/layouts/report.h"

namespace pipesim {
namespace {

constexpr double kWorthAWord = 0.001;

// The seconds that a layout takes more than the first for one cause, as a share of the first's.
struct Reason {
  std::string name;
  double more = 0;
};

std::vector<Reason> reasons_of(const Planned& first, const Planned& other) {
  const double whole = first.expected().value();
  std::vector<Reason> reasons;
  double named = 0;
  for (size_t i = 0; i < kPlanShareNames.size(); ++i) {
    const double more = (other.shares.at(i) * other.iteration.value() -
                         first.shares.at(i) * first.iteration.value()) /
                        whole;
    std::string name(kPlanShareNames.at(i));
    std::ranges::replace(name, '_', ' ');
    reasons.push_back({std::move(name), more});
    named += more;
  }
  reasons.push_back({"contention", (other.expected() - first.expected()).value() / whole - named});
  std::ranges::stable_sort(reasons, std::ranges::greater(),
                           [](const Reason& each) { return std::abs(each.more); });
  std::erase_if(reasons, [](const Reason& each) { return std::abs(each.more) < kWorthAWord; });
  return reasons;
}

std::string why_first(const Planned& first, const Planned& second) {
  std::string text;
  const auto reasons = reasons_of(first, second);
  for (const Reason& each : std::span(reasons).first(std::min<size_t>(3, reasons.size()))) {
    text += fmt::format("{}{} {:+.1f}%", text.empty() ? "" : ", ", each.name, 100 * each.more);
  }
  return fmt::format("number 2 takes {:.1f}% longer than the first{}{}",
                     100 * (second.expected() / first.expected() - 1), text.empty() ? "" : ": ",
                     text);
}

}  // namespace

std::string places_text(const ClusterPlan& plan) {
  const auto& best = plan.result.best;
  if (best.size() < 2) return "";
  const std::string& cluster = plan.question.base.hardware->name;
  std::string text = fmt::format("{}: {}\n", cluster, why_first(best[0], best[1]));
  const auto& band = plan.question.base.band;
  if (!band || band->difference <= 0) return text;
  const Seconds farthest = (1 + band->difference) * best.front().expected();
  const auto alike =
      std::ranges::find_if(best,
                           [farthest](const Planned& each) { return each.expected() > farthest; }) -
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
