#include "sim/planning/block_figures.h"

#include <algorithm>

namespace pipesim {
namespace {

long floor_of(long a, long b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// When microbatches enter that repeat themselves in groups, for ever.
struct Entries {
  long period, size, step;  // step is at most the period: groups do not overlap

  // That enter up to `slot`, counted from the group that enters at 0.
  [[nodiscard]] long until(long slot) const {
    const long groups = floor_of(slot, size * period);
    const long rest = slot - groups * size * period;
    return groups * size + (step == 0 ? size : std::min(size, rest / step + 1));
  }
};

// A chunk's slots from its F to the end of its W, counted from the entry of its microbatch.
struct Lifespan {
  long begin, end;
};

long most_alive(const std::vector<Lifespan>& chunks, const Entries& entries) {
  long most = 0;
  for (const Lifespan& one : chunks) {
    for (long j = 0; j < entries.size; ++j) {
      const long slot = one.begin + j * entries.step;
      long alive = 0;
      for (const Lifespan& each : chunks) {
        alive += entries.until(slot - each.begin) - entries.until(slot - each.end);
      }
      most = std::max(most, alive);
    }
  }
  return most;
}

// Slots in which each device works. An overlapped block takes the slots of its longer pass; the
// microbatch of its forward counts as many fewer as the shorter pass has.
std::vector<long> add_work(const Slotted& slotted, size_t middle, BlockFigures& figures) {
  std::vector<long> work(figures.devices.size());
  for (size_t d = 0; d < work.size(); ++d) {
    for (const SlottedStep& step : steps_of(slotted, static_cast<int>(d))) {
      const SlottedPasses& passes = slotted.passes[step.pass.passes];
      const int length = passes.length;
      const int beside = step.beside ? slotted.passes[step.beside->passes].length : 0;
      work[d] += std::max(length, beside);
      if (step.pass.unit != std::min(middle, passes.slots.size() - 1)) continue;
      figures.devices[d].busy -= std::min(length, beside);
    }
  }
  return work;
}

}  // namespace

int BlockFigures::most_in_flight() const {
  return std::ranges::max(devices, {}, &Device::in_flight).in_flight;
}

BlockFigures figures_of(const Description& description, const Problem& problem) {
  const Slotted slotted = with_weights(instantiate(description, problem));
  const std::vector<long> values = values_of(description, problem);
  Entries entries{description.period->value(values), 1, 0};
  if (const auto& group = description.group) {
    entries.size = group->size.value(values);
    entries.step = group->step.value(values);
  }
  const Placement& place = problem.placement;
  const long middle = problem.shape.microbatches / 2 / entries.size * entries.size;
  BlockFigures figures{.period = entries.period, .devices = {}};
  figures.devices.resize(static_cast<size_t>(place.devices()));
  std::vector<std::vector<Lifespan>> lifespans(figures.devices.size());
  std::vector<Lifespan> of_stage(static_cast<size_t>(place.virtual_stages()));
  std::vector<Lifespan> spans(figures.devices.size(), {1L << 40, 0});
  const std::vector<long> work = add_work(slotted, static_cast<size_t>(middle), figures);
  const auto ends = ends_of(slotted);
  std::vector<long> forwards(figures.devices.size());
  for (size_t i = 0; i < slotted.passes.size(); ++i) {
    const SlottedPasses& passes = slotted.passes[i];
    const auto device = static_cast<size_t>(place.device(passes.vs));
    const auto unit =
        static_cast<size_t>(std::min<long>(middle, static_cast<long>(passes.slots.size()) - 1));
    Lifespan& lifespan = of_stage[static_cast<size_t>(passes.vs)];
    const long entered = middle * entries.period;
    if (passes.kind == PassKind::kF) {
      lifespan.begin = passes.slots[unit] - entered;
      forwards[device] += static_cast<long>(passes.slots.size());
    }
    if (passes.kind == PassKind::kW || passes.kind == PassKind::kBW) {
      lifespan.end = ends[i][unit] - entered;
    }
    figures.devices[device].busy += passes.length;
    spans[device].begin = std::min<long>(spans[device].begin, std::ranges::min(passes.slots));
    spans[device].end = std::max<long>(spans[device].end, std::ranges::max(ends[i]));
  }
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const Lifespan& lifespan = of_stage[static_cast<size_t>(vs)];
    figures.devices[place.device(vs)].lifespan += lifespan.end - lifespan.begin;
    lifespans[place.device(vs)].push_back(lifespan);
  }
  for (size_t d = 0; d < lifespans.size(); ++d) {
    BlockFigures::Device& device = figures.devices[d];
    device.in_flight = static_cast<int>(std::min(most_alive(lifespans[d], entries), forwards[d]));
    const long span = spans[d].end - spans[d].begin;
    if (span <= figures.span) continue;
    figures.span = span;
    figures.work = work[d];
  }
  return figures;
}

}  // namespace pipesim
