#include "sim/execution/with_recompute.h"

#include <utility>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {
namespace {

// The backward in the pass: B or BW, also of an overlapped block; nullptr for any other.
const Pass* backward_of(const Program& program, const Pass& pass) {
  const Pass& part = pass.kind == PassKind::kFB ? program.pair(pass).backward : pass;
  return is_backward(part.kind) ? &part : nullptr;
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

std::shared_ptr<const Program> recomputing(std::shared_ptr<const Program> program,
                                           const Problem& problem) {
  if (program->copies() != nullptr || problem.recompute_chunks == 0) return program;
  return std::make_shared<const Program>(with_recompute(*program, problem.recompute_chunks));
}

}  // namespace pipesim
