// Copies to the host that a description (description.h) names, put beside the passes of its
// program.
#pragma once

#include <optional>
#include <vector>

#include "sim/core/error.h"
#include "sim/pipeline/program.h"
#include "sim/planning/expression.h"

namespace pipesim {

// One stage, those of a range, or all.
struct DescribedStages {
  std::optional<Expression> first = {};
  std::optional<Expression> last = {};  // without it, `first` alone

  struct Range {
    int first, last;
  };
  // `values` of sizes and parameters. InputError for a stage that the model does not have.
  [[nodiscard]] Range of(const std::vector<long>& values, int model_stages) const;
};

// Activations that leave for the host behind their F, on these stages.
struct DescribedCopies {
  DescribedStages stages = {};
  std::optional<Expression> only = {};   // where it is not 0; without it everywhere
  std::optional<Expression> ahead = {};  // passes before the one that needs it; without it 1
  std::optional<Expression> room = {};   // passes behind F: that one waits until it has left
  Location where = {};
};

// The program, so far without copies, with the copies of these lines. Every activation leaves
// behind its F, in the order of the F, and comes back in the order of the passes that need it.
// `values`: the sizes and parameters. Every device has a link of its own. InputError in a line that
// repeats another line's passes, or whose formulas have no values. O(passes).
Program with_described_copies(const std::vector<DescribedCopies>& lines,
                              const std::vector<long>& values, const Program& program);

}  // namespace pipesim
