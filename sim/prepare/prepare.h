// From a scenario to the cases of its schedules. Finds what a scenario leaves to be found: the
// balance of layers (balance.h) and how much offloads (automatic_offload.h).
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/case/case.h"

namespace pipesim {

// One schedule of the scenario. InputError as make_case, InfeasibleError where no balance of layers
// fits, with the nearest change that does.
Case prepare(std::shared_ptr<const Scenario> scenario, const ScheduleChoice& choice);

// The first schedule of the scenario, which is the only one that counts.
Case prepare_first(Scenario scenario);

// A schedule of a scenario as a case, or the error that says why there is none.
struct Prepared {
  ScheduleChoice choice;  // as it was prepared, or as the scenario has it
  std::string label;
  std::optional<Case> made;
  std::exception_ptr error;

  // Throws the error.
  [[nodiscard]] const Case& get() const {
    if (error) std::rethrow_exception(error);
    return *made;
  }
};

// All schedules of the scenario, in their order, told apart by their labels. Throws nothing of a
// schedule.
std::vector<Prepared> prepare_all(const std::shared_ptr<const Scenario>& scenario);

}  // namespace pipesim
