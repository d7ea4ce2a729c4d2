// PipeDream (Harlap et al., arXiv 1806.03377) and PipeDream-2BW (Narayanan et al., arXiv
// 2006.09503): 1F1B that never drains. Devices step while later microbatches are in flight, and
// keep the weights that these began with: PipeDream steps after every microbatch, so that device d
// keeps p-d versions; 2BW after all of an iteration, and two versions do everywhere. A gradient is
// applied p-1-d steps (2BW: one step) after its forward saw the weights.
//
// The order is that of 1f1b over the microbatches of all iterations; 2BW needs as many microbatches
// as devices, or else two versions do not suffice.
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::pipedream {
namespace {

Program plan(const Problem& problem) { return find_schedule("1f1b")->plan(problem); }

std::optional<Refusal> refuse_few(const Problem& problem) {
  const Shape& shape = problem.shape;
  if (shape.microbatches >= shape.devices) return std::nullopt;
  Shape nearest = shape;
  nearest.microbatches = shape.devices;
  return Refusal{fmt::format("pipedream-2bw needs as many microbatches as devices, {}, for two "
                             "versions of weights to suffice; there are {}",
                             shape.devices, shape.microbatches),
                 nearest};
}

// One iteration alone is a run of 1f1b.
const Claims& of_1f1b() { return find_schedule("1f1b")->claims; }

Claims claims() {
  return {
      .bubble = {.formula = "(p-1) (F+B+W)",
                 .domain = "of one iteration alone, fill and drain, which a stream of them "
                           "pays once; equal stages, free transfers",
                 .holds = [](const Problem& problem) { return of_1f1b().bubble.holds(problem); },
                 .bubble = [](const Problem& problem) { return of_1f1b().bubble.bubble(problem); }},
      .peak = {.formula = "min(p-d, m)",
               .domain = "of one iteration alone; p-d in a stream",
               .holds = everywhere,
               .in_flight = [](const Problem& problem, int device) {
                 return of_1f1b().peak.in_flight(problem, device);
               }}};
}

constexpr const char* kNoFlags =
    "its runtime is PipeDream's own (msr-fiddle/pipedream), which takes no flags of Megatron-LM";
constexpr const char* kLeftOut = "steps with weights of before train another model";

const RegisteredSchedule kPipeDream{{
    .name = "pipedream",
    .summary = "1F1B that never drains: a step after every microbatch, p-d versions of weights",
    .source = "PipeDream, arXiv 1806.03377; order: msr-fiddle/pipedream, runtime",
    .order = "p-1-d F, then F and BW in turn without end; a step after every BW",
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = claims(),
    .versions = {{.kept = [](int devices, int device) { return devices - device; },
                  .every_microbatch = true}},
    .no_flags = kNoFlags,
    .nearest_with_flags = "1f1b",
    .left_out_of_plan = kLeftOut,
}};

const RegisteredSchedule kPipeDream2BW{{
    .name = "pipedream-2bw",
    .summary = "1F1B that never drains: a step after every iteration, two versions of weights",
    .source = "PipeDream-2BW, arXiv 2006.09503; order: msr-fiddle/pipedream, pipedream_2bw",
    .order = "p-1-d F, then F and BW in turn without end; a step after every m-th BW",
    .refuse = refuse_few,
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = claims(),
    .versions = {{.kept = [](int, int) { return 2; }}},
    .no_flags = kNoFlags,
    .nearest_with_flags = "1f1b",
    .left_out_of_plan = kLeftOut,
}};

}  // namespace
}  // namespace pipesim::pipedream
