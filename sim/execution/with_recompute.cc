#include "sim/execution/with_recompute.h"

#include <utility>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {
namespace {

// What the pass takes back: B, BW, or the BW of an overlapped block; nullptr for any other.
const Pass* backward_of(const Program& program, const Pass& pass) {
  if (pass.kind == PassKind::kFB) return &program.pair(pass).backward;
  return pass.kind == PassKind::kB || pass.kind == PassKind::kBW ? &pass : nullptr;
}

}  // namespace

Program with_recompute(const Program& program, int chunks) {
  const Placement& place = program.placement();
  PassLists lists(place.devices());
  for (int device = 0; device < place.devices(); ++device) {
    const auto passes = program.passes(device);
    auto& list = lists[device];
    list.reserve(2 * passes.size());
    for (const Pass& pass : passes) {
      const Pass* backward = backward_of(program, pass);
      if (backward != nullptr && backward->chunk < chunks &&
          !program.recomputes(place.virtual_stage(device, backward->chunk))) {
        list.push_back({PassKind::kR, backward->chunk, backward->microbatch});
      }
      list.push_back(pass);
    }
  }
  if (program.copies() != nullptr) throw LogicError("recomputation stands before copies");
  const auto pairs = program.pairs();
  return {program.shape(),       place,
          std::move(lists),      {pairs.begin(), pairs.end()},
          program.wrap_around(), program.vocabulary()};
}

}  // namespace pipesim
