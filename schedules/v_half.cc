// V-Half and V-Min (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362):
// V-shape schedules with about half and about a third of 1F1B's activation memory.
//
// Both repeat a building block, the slots that one microbatch takes on every device, every six unit
// slots; W passes run wherever a slot is free. The ramps are then tightened (sim/planning/slots.h).
// The steady part between them is left alone: it is full. Nothing depends on times. The orders are
// those of the authors' public generator, in time near-linear in the passes.
#include <algorithm>
#include <array>
#include <vector>

#include "schedules/vocabulary.h"
#include "sim/planning/building_block.h"
#include "sim/planning/schedule.h"
#include "sim/planning/slots.h"

namespace pipesim::v_half {
namespace {

constexpr int kPeriod = 6;  // slots from one microbatch to the next: its passes on one device

Slotted slotted(const Problem& problem, VeeSlots (*block)(int, int)) {
  constexpr std::array kKinds{PassKind::kF, PassKind::kF, PassKind::kB, PassKind::kB};
  constexpr std::array kChunks{0, 1, 1, 0};
  Slotted made{problem.shape, problem.placement, {}};
  for (int d = 0; d < problem.shape.devices; ++d) {
    const VeeSlots first = block(problem.shape.devices, d);
    for (size_t i = 0; i < first.size(); ++i) {
      SlottedPasses passes{kKinds[i], problem.placement.virtual_stage(d, kChunks[i]), 1, {}};
      for (int n = 0; n < problem.shape.microbatches; ++n) {
        passes.slots.push_back(first[i] + kPeriod * n);
      }
      made.passes.push_back(std::move(passes));
    }
  }
  return made;
}

constexpr TightenedParts kRamps{.warm_up = true, .cool_down = true};

template <VeeSlots (*block)(int, int)>
Program plan(const Problem& problem) {
  if (is_sharded(problem.vocabulary)) return vocabulary_v_half(problem, block);
  return plan_from_slots(slotted(problem, block), kRamps);
}

Placement place(int devices, int /*chunks*/) { return Placement::vee(devices); }

constexpr auto kBubbleDomain = "F = B = W, equal stages, free transfers; p >= 2, m >= p + 2";
constexpr auto kBubbleGap =
    "the block is made for F = B = W; other times stretch its every round; up to m = p + 1 it may "
    "have no steady part, and the generator then hardly tightens the second half";

bool bubble_holds(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const auto [p, v, m, n] = problem.shape;
  return uniform(problem) && free_transfers(problem) && cost.forward == cost.backward_input &&
         cost.forward == cost.backward_weight && p >= 2 && m >= p + 2;
}

Seconds v_half_bubble(const Problem& problem) {
  const int p = problem.shape.devices;
  return std::max(p == 2 ? 1 : 0, p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) * problem.stage(0).forward;
}

Seconds v_min_bubble(const Problem& problem) {
  const int p = problem.shape.devices;
  return std::max(0, p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) * problem.stage(0).forward;
}

bool v_half_peak_holds(const Problem& problem) {
  const auto [p, v, m, n] = problem.shape;
  return m > p || (m == p && p % 2 == 1);
}

int v_half_peak(const Problem& problem, int /*device*/) {
  return problem.shape.devices / 2 * 2 + 2;
}

bool v_min_peak_holds(const Problem& problem) {
  return problem.shape.microbatches >= problem.shape.devices;
}

int v_min_peak(const Problem& problem, int device) {
  const auto [p, v, m, n] = problem.shape;
  return 2 * ((p + 4) / 3) - (device == 0 && p % 3 == 2 ? 1 : 0);
}

const RegisteredSchedule kVHalf{{
    .name = "v-half",
    .summary = "V-shape, two chunks per device: about half of 1F1B's activation memory and bubble",
    .source = "Controllable Memory, arXiv 2405.15362, and its public greedy generator",
    .order = "V-shape, two chunks; a six-slot block, ramps tightened greedily within its peak",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = place,
    .plan = plan<v_half_slots>,
    .fixed_order = vocabulary_not_sharded,
    .claims = {.bubble = {"3p-7 passes if p is even (1 if p = 2), 3p-4 if odd", kBubbleDomain,
                          kBubbleGap, bubble_holds, v_half_bubble},
               .peak = {"p+2 chunks if p is even, p+1 if odd", "m > p, or m = p and p odd",
                        "m = p, p even: device 0 can hold one less", v_half_peak_holds,
                        v_half_peak}},
    .vocabulary = vocabulary_v_half_claims(),
    .runs_on = Runtime::kZeroBubbleFork,
}};

const RegisteredSchedule kVMin{{
    .name = "v-min",
    .summary = "V-shape, two chunks per device: about a third of 1F1B's activation memory",
    .source = "Controllable Memory, arXiv 2405.15362, and its public greedy generator",
    .order = "as v-half with a tighter block",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = place,
    .plan = plan<v_min_slots>,
    .fixed_order = vocabulary_not_sharded,
    .claims = {.bubble = {"4p-5 passes, 4p-7 if p is a multiple of 3", kBubbleDomain, kBubbleGap,
                          bubble_holds, v_min_bubble},
               .peak = {"2 floor((p+4)/3) chunks; one less on device 0 if p = 2 modulo 3", "m >= p",
                        "", v_min_peak_holds, v_min_peak}},
    .runs_on = Runtime::kZeroBubbleFork,
}};

}  // namespace
}  // namespace pipesim::v_half
