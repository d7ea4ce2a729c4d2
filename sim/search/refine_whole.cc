#include "sim/search/refine_whole.h"

#include "sim/execution/with_backwards_apart.h"
#include "sim/pipeline/unequal_units.h"

namespace pipesim {
namespace {

// B does what BW did, and W nothing.
Problem of_whole_backwards(Problem problem) {
  for_all_stages(problem, [](StageCost& stage) {
    stage.backward_input += stage.backward_weight;
    stage.backward_weight = Seconds(0);
    stage.weight_stash = Bytes(0);
  });
  return problem;
}

}  // namespace

Program refine_whole(const Program& program, const Problem& problem, Bytes limit,
                     const RefineOptions& options) {
  const Program apart = with_backwards_apart(program);
  return with_backwards_whole(refine(apart, of_whole_backwards(problem), limit, options));
}

}  // namespace pipesim
