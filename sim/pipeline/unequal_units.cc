#include "sim/pipeline/unequal_units.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pipesim {
namespace {

constexpr std::array kSeconds{&StageCost::forward,         &StageCost::backward_input,
                              &StageCost::backward_weight, &StageCost::transfer,
                              &StageCost::copy_out,        &StageCost::copy_in};
constexpr std::array kMaybeSeconds{&StageCost::overlapped, &StageCost::recompute};
constexpr std::array kBytes{&StageCost::activation, &StageCost::weight_stash,
                            &StageCost::checkpoint};

// The mean seconds and the largest bytes of a stage, kinds weighed by their units.
StageCost planned_with(const std::vector<UnitKind>& kinds, const std::vector<double>& share,
                       size_t vs) {
  StageCost sum = scaled(kinds.front().stages[vs], share.front());
  for (size_t kind = 1; kind < kinds.size(); ++kind) {
    const StageCost one = scaled(kinds[kind].stages[vs], share[kind]);
    for (const auto seconds : kSeconds) sum.*seconds += one.*seconds;
    for (const auto seconds : kMaybeSeconds) {
      if (sum.*seconds) *(sum.*seconds) += *(one.*seconds);
    }
  }
  for (const auto bytes : kBytes) {
    sum.*bytes = Bytes(0);
    for (const UnitKind& kind : kinds) sum.*bytes = std::max(sum.*bytes, kind.stages[vs].*bytes);
  }
  return sum;
}

}  // namespace

StageCost scaled(const StageCost& cost, double factor) {
  StageCost made = cost;
  for (const auto seconds : kSeconds) made.*seconds = factor * made.*seconds;
  for (const auto seconds : kMaybeSeconds) {
    if (made.*seconds) *(made.*seconds) = factor * *(made.*seconds);
  }
  for (const auto bytes : kBytes) made.*bytes = factor * made.*bytes;
  return made;
}

Problem of_cheapest_units(Problem problem) {
  for (const UnitKind& kind : problem.kinds) {
    for (size_t vs = 0; vs < problem.stages.size(); ++vs) {
      StageCost& least = problem.stages[vs];
      const StageCost& one = kind.stages[vs];
      for (const auto seconds : kSeconds) least.*seconds = std::min(least.*seconds, one.*seconds);
      for (const auto seconds : kMaybeSeconds) {
        if (one.*seconds) least.*seconds = std::min(*(least.*seconds), *(one.*seconds));
      }
      for (const auto bytes : kBytes) least.*bytes = std::min(least.*bytes, one.*bytes);
    }
  }
  problem.kinds.clear();
  problem.kind_of_unit.clear();
  return problem;
}

void set_kinds(Problem& problem, std::vector<UnitKind> kinds,
               std::vector<std::uint32_t> kind_of_unit) {
  if (kinds.size() == 1 && kinds.front().size == 1) {
    problem.stages = std::move(kinds.front().stages);
    problem.kinds.clear();
    problem.kind_of_unit.clear();
    return;
  }
  std::vector<double> share(kinds.size(), 0);
  for (const std::uint32_t kind : kind_of_unit) {
    share[kind] += 1.0 / static_cast<double>(kind_of_unit.size());
  }
  for (size_t vs = 0; vs < problem.stages.size(); ++vs) {
    problem.stages[vs] = planned_with(kinds, share, vs);
  }
  problem.kinds = std::move(kinds);
  problem.kind_of_unit = std::move(kind_of_unit);
}

std::vector<double> works_of_microbatches(const Problem& problem) {
  std::vector<double> of_kind;
  for (const UnitKind& kind : problem.kinds) {
    double sum = 0;
    for (const StageCost& stage : kind.stages) {
      sum += (stage.forward + stage.backward_input + stage.backward_weight).value();
    }
    of_kind.push_back(sum);
  }
  std::vector<double> works(static_cast<std::size_t>(problem.shape.microbatches), 0);
  const auto splits = static_cast<std::size_t>(problem.shape.splits);
  for (std::size_t unit = 0; unit < problem.kind_of_unit.size(); ++unit) {
    works[unit / splits] += of_kind[problem.kind_of_unit[unit]];
  }
  return works;
}

std::vector<std::uint32_t> kinds_in_order(const Problem& problem, std::span<const int> order) {
  const int splits = problem.shape.splits;
  std::vector<std::uint32_t> kinds;
  for (const int microbatch : order) {
    const auto first = problem.kind_of_unit.begin() + microbatch * splits;
    kinds.insert(kinds.end(), first, first + splits);
  }
  return kinds;
}

}  // namespace pipesim
