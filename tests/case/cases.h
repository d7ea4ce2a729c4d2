// Cases of scenarios as tests have them.
#pragma once

#include <memory>

#include "sim/prepare/prepare.h"

namespace pipesim {

inline Case case_of(const Scenario& scenario, const ScheduleChoice& choice) {
  return prepare(std::make_shared<const Scenario>(scenario), choice);
}

}  // namespace pipesim
