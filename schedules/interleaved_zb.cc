// PyTorch's interleaved zero-bubble schedule (torch.distributed.pipelining,
// ScheduleInterleavedZeroBubble): interleaved 1F1B with one warm-up forward less per device, and
// backward split so that device d owes d W, which fill its cool-down.
#include <algorithm>
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::interleaved_zb {
namespace {

// Microbatches that go through a chunk before the next chunk's turn: as many rounds of at least p
// as there are, all of the same size.
int rounds(const Shape& shape) { return std::max(1, shape.microbatches / shape.devices); }
int group(const Shape& shape) { return shape.microbatches / rounds(shape); }

// The k-th F of a device; the k-th backward has the chunk counted from the last.
Pass forward(const Shape& shape, int k) {
  const int per_round = group(shape) * shape.chunks;
  const int chunk = k % per_round / group(shape);
  return make_pass(PassKind::kF, k / per_round * group(shape) + k % group(shape), chunk);
}

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int all = shape.microbatches * shape.chunks;
  PassLists lists(shape.devices);
  for (int d = 0; d < shape.devices; ++d) {
    auto& list = lists[d];
    const int warm_up = std::min((shape.chunks - 1) * group(shape) + shape.devices - 1 - d, all);
    std::vector<Pass> weights;
    for (int k = 0; k < warm_up; ++k) list.push_back(forward(shape, k));
    for (int k = 0; k < all; ++k) {
      if (warm_up + k < all) list.push_back(forward(shape, warm_up + k));
      Pass pass = forward(shape, k);
      pass.chunk = static_cast<std::uint16_t>(shape.chunks - 1 - pass.chunk);
      pass.kind = PassKind::kB;
      list.push_back(pass);
      pass.kind = PassKind::kW;
      weights.push_back(pass);
      if (k >= d) list.push_back(weights[k - d]);
    }
    list.insert(list.end(), weights.end() - std::min(d, all), weights.end());
  }
  return {shape, problem.placement, std::move(lists)};
}

std::optional<Refusal> refuse(const Problem& problem) {
  const Shape& shape = problem.shape;
  if (shape.microbatches % rounds(shape) == 0) return std::nullopt;
  Refusal refusal{
      fmt::format(
          "interleaved-zb runs rounds of equal size, of at least as many microbatches as there "
          "are devices: {} microbatches on {} devices are {} rounds, which do not divide them",
          shape.microbatches, shape.devices, rounds(shape)),
      shape};
  refusal.nearest.microbatches -= shape.microbatches % rounds(shape);
  return refusal;
}

bool whole_rounds(const Problem& problem) {
  return problem.shape.microbatches % problem.shape.devices == 0;
}

bool bubble_is_known(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  return whole_rounds(problem) && uniform(problem) && free_transfers(problem) &&
         cost.backward_weight <= std::min(cost.forward, cost.backward_input);
}

const RegisteredSchedule kInterleavedZb{{
    .name = "interleaved-zb",
    .summary = "interleaved 1F1B with B and W apart: a third of its bubble in about its memory",
    .source = "PyTorch, torch.distributed.pipelining, ScheduleInterleavedZeroBubble",
    .order = "as interleaved 1F1B with one warm-up F less a device; W once a device owes d",
    .default_chunks = 2,
    .max_chunks = 1024,
    .refuse = refuse,
    .plan = plan,
    .fixed_order = everywhere,
    .claims =
        {.bubble = {.formula = "(p-1) (F+B-W), F, B, W of a chunk",
                    .domain =
                        "m a multiple of p, W no longer than F or B; equal stages, free transfers",
                    .holds = bubble_is_known,
                    .bubble =
                        [](const Problem& problem) {
                          const StageCost& cost = problem.stage(0);
                          return (problem.shape.devices - 1) *
                                 (cost.forward + cost.backward_input - cost.backward_weight);
                        }},
         .peak = {.formula = "v p chunks",
                  .domain = "m a multiple of p",
                  .holds = whole_rounds,
                  .in_flight = [](const Problem& problem,
                                  int) { return problem.shape.chunks * problem.shape.devices; }}},
    .no_flags = "PyTorch runs it (ScheduleInterleavedZeroBubble), which has no flags",
    .nearest_with_flags = "gis",
}};

}  // namespace
}  // namespace pipesim::interleaved_zb
