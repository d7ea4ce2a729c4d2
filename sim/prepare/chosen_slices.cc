#include "sim/prepare/chosen_slices.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/case/program.h"
#include "sim/case/unequal_units.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/best_slices.h"
#include "sim/planning/room.h"
#include "sim/prepare/microbatch_order.h"

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

std::vector<std::vector<long>> slices_of_one_length(int units) {
  std::vector<std::vector<long>> all;
  for (int count = 1; count <= units; ++count) {
    if (units % count == 0) all.emplace_back(static_cast<size_t>(count), units / count);
  }
  return all;
}

Case unsplit(Outline outline, const Layout* balanced) {
  outline.choice.slices = {1};
  return batch_case(std::move(outline), balanced);
}

// Tokens that each slice but the first has a multiple of.
long multiple_of(const Case& made) {
  const int step = made.setting ? token_step(made.setting->context) : 1;
  const int multiple = made.choice.equal_slices->multiple.value_or(step);
  if (multiple % step == 0) return multiple;
  throw InputError(made.choice.where,
                   fmt::format("{}: multiple_of is {} tokens, and ranks divide multiples of {}",
                               made.choice.name, multiple, step));
}

// The most tokens, a multiple of `step`, of a slice that ends at `end` of `of` and takes no more
// FLOPs than `most`.
long longest_within(const Case& made, long end, long of, long step, double most) {
  long fits = 0;
  for (long over = end / step + 1; over - fits > 1;) {
    const long middle = (fits + over) / 2;
    const bool within = forward_work(made, {end - middle * step, end, of}) <= most;
    (within ? fits : over) = middle;
  }
  return fits * step;
}

Seconds makespan_of(Outline outline, const Layout* balanced, const std::vector<long>& slices) {
  outline.choice.slices = slices;
  const Case made = batch_case(std::move(outline), balanced);
  return evaluate(*make_program(made), made.problem).makespan;
}

}  // namespace

std::vector<long> choose_slices(const Outline& outline, const Layout* balanced) {
  const Case made = unsplit(outline, balanced);
  const int units = *outline.choice.slice_units;
  auto plans =
      best_slices(units, made.problem.shape.microbatches, kMostTried, [&](int begin, int length) {
        return time_of(made, slice_costs(made, {begin, begin + length, units}));
      });
  for (auto& equal : slices_of_one_length(units)) plans.push_back(std::move(equal));
  std::vector<Seconds> seconds;
  for (const auto& plan : plans) seconds.push_back(makespan_of(outline, balanced, plan));
  return plans[static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin())];
}

std::vector<long> equal_slices(const Outline& outline, const Layout* balanced) {
  const Case made = unsplit(outline, balanced);
  const int count = made.choice.equal_slices->count;
  const auto refuse = [&made, count](const char* why) {
    throw InputError(made.choice.where,
                     fmt::format("{}: {} slices of equal FLOPs {}", made.choice.name, count, why));
  };
  const auto tokens = made.scenario->batch.seq_length;
  if (!tokens) refuse("need batch.seq_length, the tokens that they divide");
  const long step = multiple_of(made);
  const double most = forward_work(made, {0, *tokens, *tokens}) / count * kRounding;
  std::vector<long> lengths(static_cast<size_t>(count));
  long end = *tokens;
  for (size_t slice = lengths.size(); slice-- > 1;) {
    lengths[slice] = longest_within(made, end, *tokens, step, most);
    end -= lengths[slice];
    if (lengths[slice] == 0) refuse("leave one without tokens: ask for fewer");
  }
  lengths[0] = end;
  if (end <= 0) refuse("leave the first without tokens: ask for fewer");
  return lengths;
}

}  // namespace pipesim
