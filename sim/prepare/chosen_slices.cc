#include "sim/prepare/chosen_slices.h"

#include <algorithm>
#include <utility>

#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/case/unequal_units.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/best_slices.h"

namespace pipesim {
namespace {

Seconds work_of(const StageCost& stage, bool recomputed) {
  const Seconds once = stage.forward + stage.backward_input + stage.backward_weight;
  return recomputed ? once + stage.recompute.value_or(stage.forward) : once;
}

SliceTime time_of(const Case& made, const std::vector<StageCost>& stages) {
  const Placement& place = made.placement;
  std::vector<Seconds> devices(static_cast<size_t>(place.devices()));
  Seconds sum;
  Seconds messages;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const bool recomputed = place.chunk(vs) < made.problem.recompute_chunks;
    const Seconds work = work_of(stages[vs], recomputed);
    devices[place.device(vs)] += work;
    sum += work;
    messages += stages[vs].transfer;
  }
  const Seconds most = *std::ranges::max_element(devices);
  return {most, sum - most + 2 * messages};
}

// Plans assume equal stages, and F and B that are longest together.
constexpr size_t kMostTried = 32;

std::vector<std::vector<long>> equal_slices(int units) {
  std::vector<std::vector<long>> all;
  for (int count = 1; count <= units; ++count) {
    if (units % count == 0) all.emplace_back(static_cast<size_t>(count), units / count);
  }
  return all;
}

Seconds makespan_of(Outline outline, const Layout* balanced, const std::vector<long>& slices) {
  outline.choice.slices = slices;
  const Case made = make_case(std::move(outline), balanced);
  return evaluate(*make_program(made), made.problem).makespan;
}

}  // namespace

std::vector<long> choose_slices(const Outline& outline, const Layout* balanced) {
  Outline whole = outline;
  whole.choice.slices = {1};
  const Case made = make_case(std::move(whole), balanced);
  const int units = *outline.choice.slice_units;
  auto plans =
      best_slices(units, made.problem.shape.microbatches, kMostTried, [&](int begin, int length) {
        return time_of(made, slice_costs(made, {begin, begin + length, units}));
      });
  for (auto& equal : equal_slices(units)) plans.push_back(std::move(equal));
  std::vector<Seconds> seconds;
  for (const auto& plan : plans) seconds.push_back(makespan_of(outline, balanced, plan));
  return plans[static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin())];
}

}  // namespace pipesim
