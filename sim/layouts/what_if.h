// Gains by more of one thing, losses by less: the question again with one thing changed.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/layouts/plan.h"

namespace pipesim {

struct PlanWhatIf {
  std::string quantity;       // "memory of a GPU"
  double factor = 0;          // 0 where a schedule is named
  PlanQuestion question;      // as it was searched
  std::vector<Planned> best;  // the fastest, by replay; none where nothing fits

  // "memory of a GPU x 1.1"
  [[nodiscard]] std::string change() const;
};

// A change by name: so many times a quantity, or another schedule.
struct WhatIfChange {
  std::string name = {};      // "network"
  double factor = 0;          // 0 where a schedule is named
  std::string schedule = {};  // its name
  Location where = {};
};
// "network=0.5", "schedule=1f1b"; InputError at `where` for another text, with the nearest name.
WhatIfChange read_what_if(const std::string& text, const Location& where);

// The question again with each of the changes by itself. InputError for one that it does not have,
// as GPUs that are no whole nodes, or a network within one node.
std::vector<PlanWhatIf> plan_named_what_ifs(const PlanQuestion& question, PlanOptions options,
                                            std::span<const WhatIfChange> changes);

inline constexpr std::array kWhatIfFactors{0.8, 1.1, 1.5, 2.0};

// Multiplies one thing at a time by each factor. The things are memory of a GPU, bandwidth between
// nodes, bandwidth within a node, and GPUs with the same batch. GPUs take only factors that give
// whole nodes, or a number within one. Each is a search as by `plan`, for one layout. Factors are
// above 0.
std::vector<PlanWhatIf> plan_what_ifs(const PlanQuestion& question, PlanOptions options,
                                      std::span<const double> factors = kWhatIfFactors);

}  // namespace pipesim
