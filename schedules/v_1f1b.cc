// 1F1B-V (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362): 1F1B on the
// V-shape, with B and W always fused, in about two thirds of 1F1B's activation memory.
//
// A building block, the slots that one microbatch takes on every device, is repeated every six unit
// slots: one slot for each F, two for each BW. Then every pass, in order of slots, moves to the
// earliest hole after what it waits for (sim/planning/slots.h). The order does not depend on the
// stages' times.
#include <algorithm>
#include <utility>

#include "sim/planning/schedule.h"
#include "sim/planning/slots.h"

namespace pipesim::v_1f1b {
namespace {

// The passes of one microbatch follow each other, but for gaps of three slots: after every third BW
// and, where p is a multiple of 3, before the first. They keep the slots of a device apart modulo
// the period.
Slotted slotted(const Problem& problem) {
  constexpr int kPeriod = 6;  // slots from one microbatch to the next
  Slotted made{problem.shape, problem.placement, {}};
  const auto put = [&](PassKind kind, int vs, int length, int slot) {
    SlottedPasses passes{kind, vs, length, {}};
    for (int n = 0; n < problem.shape.microbatches; ++n) passes.slots.push_back(slot + kPeriod * n);
    made.passes.push_back(std::move(passes));
  };
  const int p = problem.shape.devices;
  for (int vs = 0; vs < 2 * p; ++vs) put(PassKind::kF, vs, 1, vs);
  int slot = 2 * p + (p % 3 == 0 ? 3 : 0);
  int until_gap = (p + 1) % 3 + 1;
  for (int vs = 2 * p - 1; vs >= 0; --vs) {
    put(PassKind::kBW, vs, 2, slot);
    slot += --until_gap == 0 ? 5 : 2;
    if (until_gap == 0) until_gap = 3;
  }
  return made;
}

Program plan(const Problem& problem) {
  return plan_from_slots(slotted(problem), {true, true, true});
}

const RegisteredSchedule kV1f1b{{
    .name = "1f1b-v",
    .summary = "1F1B on the V-shape, B and W fused: about two thirds of 1F1B's activation memory",
    .source = "Controllable Memory, arXiv 2405.15362, and its public generator",
    .order = "V-shape, two chunks, B and W fused; a six-slot block, each pass moved left within "
             "its peak",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int /*chunks*/) { return Placement::vee(devices); },
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {
                   .formula = "5(p-1) passes if p = 1 modulo 3, 5p-7 if p = 2 (4 for two "
                              "devices)",
                   .domain = "F = B = W, equal stages, free transfers, m >= p, p no multiple "
                             "of 3",
                   .gap = "the block is made for F = B = W, and other times stretch every "
                          "round of it; with multiples of 3 it is 5p-9 to 5p-7, by no rule "
                          "that we found",
                   .holds =
                       [](const Problem& problem) {
                         const auto [p, v, m, n] = problem.shape;
                         const StageCost& cost = problem.stage(0);
                         return uniform(problem) && free_transfers(problem) &&
                                cost.forward == cost.backward_input &&
                                cost.forward == cost.backward_weight && m >= p && p % 3 != 0;
                       },
                   .bubble =
                       [](const Problem& problem) {
                         const int p = problem.shape.devices;
                         const int passes = p % 3 == 1 ? 5 * (p - 1) : std::max(4, 5 * p - 7);
                         return passes * problem.stage(0).forward;
                       }},
               .peak = {.formula = "min(2m, 2 floor(2p/3) + 2, m + 1 + floor(3d/2)) chunks",
                        .domain = "every m",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const auto [p, v, m, n] = problem.shape;
                              return std::min({2 * m, 2 * (2 * p / 3) + 2, m + 1 + 3 * device / 2});
                            }}},
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "v-half has a smaller bubble in less memory",
}};

}  // namespace
}  // namespace pipesim::v_1f1b
