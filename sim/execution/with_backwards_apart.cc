#include "sim/execution/with_backwards_apart.h"

#include <utility>

namespace pipesim {

Program with_backwards_apart(const Program& program) {
  PassLists lists;
  for (int d = 0; d < program.shape().devices; ++d) {
    auto& list = lists.emplace_back();
    for (Pass pass : program.passes(d)) {
      const bool whole = pass.kind == PassKind::kBW;
      if (whole) pass.kind = PassKind::kB;
      list.push_back(pass);
      if (whole) list.push_back(make_pass(PassKind::kW, pass.microbatch, pass.chunk));
    }
  }
  return {program.shape(),       program.placement(),
          std::move(lists),      {program.pairs().begin(), program.pairs().end()},
          program.wrap_around(), program.vocabulary()};
}

}  // namespace pipesim
