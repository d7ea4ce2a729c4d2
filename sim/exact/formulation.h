// The mixed-integer program whose optimum is the best order of passes.
//
// Variables: which of every undecided pair of passes of a device runs first, how long every pass's
// device has idled before it, and the cost. The start of a pass is a sum: its device's start, the
// passes ordered before it, and that idle time. An order binds through idle time, which never falls
// along a device. The usual big constant switches that off for the other order. It is then no
// horizon, but the idle time that the bound on the cost leaves. Triples of passes are kept free of
// cycles, which makes the order total.
//
// tests/exact/README.md compares it with the program of the Zero Bubble paper.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/exact/milp.h"
#include "sim/pipeline/program.h"
#include "sim/search/ordering.h"

namespace pipesim::exact {

class Formulation {
 public:
  explicit Formulation(const Ordering& ordering);

  [[nodiscard]] const Milp& milp() const { return milp_; }
  // The program that the values of the variables mean.
  [[nodiscard]] Program decode(const std::map<std::string, double>& values) const;
  // The binary variables that mean the program, which must cost the bound or less.
  [[nodiscard]] std::map<int, double> encode(const Program& program) const;

 private:
  void add_variables();
  void add_idle_rises(int i, int j);
  void add_device(int device);
  void add_arc(const Arc& arc);
  void add_window(int i);
  void add_memory(int i);
  [[nodiscard]] bool is_between(int i, int j) const;
  void add_total_order(int i, int j, int k);
  void add_cycle_row(int i, int j, int k);

  [[nodiscard]] Linear runs_before(int i, int j) const;  // 1 or 0
  [[nodiscard]] Linear start(int i) const;
  [[nodiscard]] double least_idle(int i) const;
  [[nodiscard]] double most_idle(int i) const;

  const Ordering& ordering_;
  Milp milp_;
  int cost_ = 0;
  std::vector<int> idle_;                     // by task
  std::map<std::pair<int, int>, int> first_;  // by tasks i < j: i runs before j
};

}  // namespace pipesim::exact
