// Orders of passes by rules that every device follows by itself: phases of passes that repeat. An
// example is some F, then F and BW in turn, then the rest of BW.
//
// docs/reference/descriptions.md says what each part means; description.h has the schedule that
// such rules make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/expression.h"

namespace pipesim {

// The next pass of a kind that the device has. For F, B, BW and R it is the next microbatch of a
// chunk. For W it is the one whose B ran first; for a vocabulary's passes, the next microbatch.
struct RulePass {
  PassKind kind = PassKind::kF;
  std::optional<int> chunk = {};  // without it, as the order says, or the only one
  Location where = {};
};

// A pass, or an F beside a backward that runs with it as one overlapped block. That backward is of
// a unit whose F ran before the block.
struct RuleStep {
  RulePass pass;
  std::optional<RulePass> beside = {};
};

// Whole rounds of these steps, while each has something to run, and `rounds` of them at most.
struct RulePhase {
  std::vector<RuleStep> steps;
  std::optional<Expression> rounds = {};  // by sizes, parameters and d
};

struct DeviceRules {
  std::vector<RulePhase> phases;
  // The chunk of the i-th F and of the i-th B or BW of a device (and R), by sizes, parameters, d
  // and i.
  std::optional<Expression> forward_order = {};
  std::optional<Expression> backward_order = {};
  Location where = {};

  // True where some step runs a pass of the kind; of kFB, where some step is a block.
  [[nodiscard]] bool has(PassKind kind) const;
  [[nodiscard]] bool shares_vocabulary() const;
};

// The names that stand in formulas of rules, after the sizes and parameters.
std::vector<std::string> rule_names();  // d i

// `values`: the sizes and parameters. Passes of a vocabulary are left out where the problem does
// not share it. InputError in rules that leave passes out or name a chunk beyond the device's.
// `walk` checks that the order can be executed. O(passes x chunks of a device).
Program plan_by_rules(const DeviceRules& rules, const std::vector<long>& values,
                      const Problem& problem);

// Figures of the rules before anything runs, for any pass times: the claims of a description by
// rules. tests/read/rules_test.cc holds simulations to them.
struct RuleFigures {
  std::vector<long> rounds;  // of each phase
  int in_flight = 0;         // chunks between the start of their F and the end of W or BW, at most
};

// By device; errors and complexity of `plan_by_rules`.
std::vector<RuleFigures> figures_of_rules(const DeviceRules& rules, const std::vector<long>& values,
                                          const Problem& problem);

}  // namespace pipesim
