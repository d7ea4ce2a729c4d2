#include "sim/execution/with_backwards_apart.h"

#include <utility>
#include <vector>

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

Program with_backwards_whole(const Program& program) {
  std::vector<OverlappedPair> pairs(program.pairs().begin(), program.pairs().end());
  PassLists lists;
  for (const std::vector<Pass>& from : program.lists()) {
    std::vector<Pass>& list = lists.emplace_back();
    for (Pass pass : from) {
      if (pass.kind == PassKind::kW) continue;
      if (pass.kind == PassKind::kB) pass.kind = PassKind::kBW;
      const bool no_block =
          pass.kind == PassKind::kFB && pairs[pass.microbatch].backward.kind == PassKind::kW;
      list.push_back(no_block ? pairs[pass.microbatch].forward : pass);
    }
  }
  for (OverlappedPair& pair : pairs) pair.backward.kind = PassKind::kBW;
  return {program.shape(), program.placement(), std::move(lists), std::move(pairs),
          program.wrap_around()};
}

}  // namespace pipesim
