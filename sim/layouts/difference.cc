#include "sim/layouts/difference.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace pipesim {
namespace {

constexpr double kWorthAWord = 0.001;

struct Term {
  std::string name;
  double share = 0;
};

std::string text_of(std::vector<Term> terms, size_t most) {
  std::erase_if(terms, [](const Term& each) { return std::abs(each.share) < kWorthAWord; });
  std::ranges::stable_sort(terms, std::ranges::greater(),
                           [](const Term& each) { return std::abs(each.share); });
  if (terms.size() > most) terms.resize(most);
  std::string text;
  for (const Term& each : terms) {
    text += fmt::format("{}{} {:+.1f}%", text.empty() ? "" : ", ", each.name, 100 * each.share);
  }
  return text;
}

}  // namespace

PlanDifference difference_of(const Planned& than, const Planned& other) {
  PlanDifference difference;
  for (size_t i = 0; i < difference.causes.size(); ++i) {
    difference.causes[i] = other.shares[i] * other.iteration - than.shares[i] * than.iteration;
  }
  difference.contention = (other.expected() - other.iteration) - (than.expected() - than.iteration);
  difference.memory = other.peak - than.peak;
  return difference;
}

std::string causes_text(const Planned& than, const PlanDifference& difference, size_t most) {
  const Seconds whole = than.expected();
  std::vector<Term> terms;
  for (size_t i = 0; i < difference.causes.size(); ++i) {
    std::string name(kPlanShareNames[i]);
    std::ranges::replace(name, '_', ' ');
    terms.push_back({std::move(name), difference.causes[i] / whole});
  }
  terms.push_back({"contention", difference.contention / whole});
  return text_of(std::move(terms), most);
}

std::string parts_text(const Planned& than, const PlanDifference& difference) {
  const Seconds whole = than.expected();
  const std::vector<Term> terms{{"compute", difference.compute() / whole},
                                {"communication", difference.communication() / whole},
                                {"bubble", difference.bubble() / whole},
                                {"recompute", difference.recompute() / whole}};
  return text_of(terms, terms.size());
}

}  // namespace pipesim
