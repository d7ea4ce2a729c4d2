// One published figure and what the simulator makes of it.
#pragma once

#include <optional>
#include <string>

namespace pipesim {

// Where a cell is the speed of a measured run: cells with the same model and setting differ by
// schedule alone.
struct RunOfSchedule {
  std::string model;  // with the machine, where a paper has several
  std::string setting;
  std::string schedule;
};

struct Cell {
  std::string table;
  std::string cell;
  double published = 0;
  std::optional<double> simulated;  // absent: not modelled, `note` says why
  std::string note;
  bool must_agree = false;    // to the printed digits; the validation fails when it does not
  bool may_be_lower = false;  // agreeing includes beating: an automatic schedule's bubble
  int digits = 4;             // decimals that the paper prints
  // Measured values: errors are shares of the published value. `must_agree` then means within
  // `worst`, or within `within` in the unit of the cell, and the median over a table's cells within
  // `median` (0: no such target).
  bool relative = false;
  double worst = 0;
  double within = 0;
  double median = 0;
  std::optional<RunOfSchedule> run = {};

  // simulated - published, in the unit of the cell (bubble rates: a fraction).
  [[nodiscard]] std::optional<double> error() const;
  // simulated / published - 1.
  [[nodiscard]] std::optional<double> relative_error() const;
  // True if the simulated value rounds to the published one (or below, where it may). A measured
  // value must lie within `worst`.
  [[nodiscard]] bool agrees() const;
};

}  // namespace pipesim
