// A row that cannot be simulated ends no other: its cells say why.
#pragma once

#include <functional>
#include <string>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim {

inline void simulate(Cell& cell, const std::function<double()>& value) {
  try {
    cell.simulated = value();
  } catch (const InfeasibleError& error) {
    cell.simulated.reset();
    cell.note = std::string("not modelled: ") + error.what();
    cell.must_agree = false;
  }
}

}  // namespace pipesim
