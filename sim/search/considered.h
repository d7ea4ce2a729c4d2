// The families of a search, before any is planned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planning/schedule.h"
#include "sim/scenario/scenario.h"
#include "sim/search/search_options.h"

namespace pipesim {

// Recomputation and offload that a scenario fixes: nothing of either where it has none.
struct FixedRelief {
  std::optional<Recompute> recompute;
  std::optional<Offload> offload;

  // True where whole activations stay on their device: modules alone may be made again.
  [[nodiscard]] bool keeps_all() const;
};

// The scenario's offload with the recomputation of each of its schedules, once, less what the
// options choose in their place. Every registered family runs with each.
std::vector<FixedRelief> fixed_reliefs(const Scenario& scenario, const SearchOptions& options);

// The number of stages where costs or memory are given per stage: the first schedule's.
std::optional<int> stages_of_costs(const Scenario& scenario);

struct Considered {
  // Each choice, with each allowed number of chunks offloaded and recomputed. Where one is left
  // out, those after it would be left out for the same reason.
  std::vector<std::vector<ScheduleChoice>> families;
  std::vector<std::string> left_out;  // "name: reason"
};

// True where the choice's schedule plans within a limit; an order that was read is fixed.
bool takes_limit(const ScheduleChoice& choice);

// Registered and described schedules that are asked for, with every number of chunks and choice of
// open parameters, and the scenario's orders. InfeasibleError for more passes of all and their
// limits than `max_passes`.
Considered families_considered(const Scenario& scenario, const SearchOptions& options);

// InfeasibleError for scenarios of which Search considers nothing.
void refuse_what_no_search_plans(const Scenario& scenario, const SearchOptions& options);

}  // namespace pipesim
