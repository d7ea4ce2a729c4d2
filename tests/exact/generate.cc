#include "tests/exact/generate.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipesim::exact {
namespace {

// Equal passes, unequal passes on equal stages, and stages that all differ, in turn.
void draw_times(testing::Random& random, int style, Problem& problem) {
  StageCost cost = problem.stages.front();
  const auto draw = [&random] { return Seconds(random.integer(1, 9)); };
  cost.forward = cost.backward_input = cost.backward_weight = Seconds(random.coin() ? 1 : 4);
  for (size_t vs = 0; vs < problem.stages.size(); ++vs) {
    if (style == 2 || (style == 1 && vs == 0)) {
      cost.forward = draw();
      cost.backward_input = draw();
      cost.backward_weight = draw();
    }
    problem.stages[vs] = cost;
  }
  testing::set_transfers(problem, random.coin() ? 0 : random.integer(1, 3));
}

// W needs all that F kept, or half, or nothing of it; now and then a device keeps more than
// another. The limit is a multiple of half a microbatch, between one and what can be in flight at
// all.
void draw_memory(testing::Random& random, Problem& problem) {
  constexpr double kStash[] = {1, 1, 0.5, 0.5, 0.25, 0};
  const double stash = kStash[random.integer(0, 5)];
  const bool uneven = random.integer(0, 3) == 0;
  for (StageCost& cost : problem.stages) {
    cost.activation = Bytes(uneven ? random.integer(2, 4) : 1);
    cost.weight_stash = stash * cost.activation;
  }
  const int most = std::min(2 * problem.shape.devices, problem.shape.microbatches);
  problem.activation_limit = 0.5 * random.integer(2, 2 * most) * problem.device_activation();
}

}  // namespace

std::vector<Instance> generate(std::uint64_t seed, int linear, int vee) {
  testing::Random random(seed);
  std::vector<Instance> instances;
  for (int i = 0; i < linear + vee; ++i) {
    const bool one_chunk = i < linear;
    const int devices = one_chunk ? 2 + i % 3 : 2 + i % 2;
    const int most = one_chunk ? 8 : 8 - devices;  // microbatches
    const Shape shape{devices, one_chunk ? 1 : 2, random.integer(2, most), 1};
    Instance& instance = instances.emplace_back();
    const Placement place = one_chunk ? Placement::looped(devices, 1) : Placement::vee(devices);
    instance.problem = testing::make_problem(shape, place);
    draw_times(random, random.integer(0, 2), instance.problem);
    draw_memory(random, instance.problem);
    instance.id = fmt::format("{}-{:02}-p{}-m{}", one_chunk ? "linear" : "vee", i, devices,
                              shape.microbatches);
  }
  return instances;
}

std::vector<Instance> generate_alike(std::uint64_t seed, int count) {
  testing::Random random(seed);
  std::vector<Instance> instances;
  for (int i = 0; i < count; ++i) {
    const int devices = random.integer(2, 3);
    const int microbatches = random.integer(2, 7 - devices);
    std::vector<StageCost> costs(static_cast<size_t>(devices));
    constexpr double kStash[] = {2, 1, 0};
    const double stash = kStash[random.integer(0, 2)];
    for (StageCost& cost : costs) {
      cost.forward = Seconds(2 * random.integer(1, 9));
      cost.backward_input = Seconds(2 * random.integer(1, 9));
      cost.backward_weight = Seconds(2 * random.integer(1, 9));
      cost.activation = Bytes(2);
      cost.weight_stash = Bytes(stash);
    }
    const double transfer = random.coin() ? 0 : random.integer(1, 3);
    const int most = std::min(2 * devices, microbatches);
    const Bytes limit = Bytes(random.integer(2, 2 * most));
    for (const std::string placement : {"linear", "looped", "vee"}) {
      const Placement place = placement_of(placement, devices);
      Instance& instance = instances.emplace_back();
      instance.problem = testing::make_problem({devices, place.chunks(), microbatches, 1}, place);
      for (int vs = 0; vs < place.virtual_stages(); ++vs) {
        const StageCost& of = costs[static_cast<size_t>(place.device(vs))];
        const double share = 1.0 / place.chunks();
        StageCost& cost = instance.problem.stages[vs];
        cost.forward = share * of.forward;
        cost.backward_input = share * of.backward_input;
        cost.backward_weight = share * of.backward_weight;
        cost.activation = share * of.activation;
        cost.weight_stash = share * of.weight_stash;
      }
      testing::set_transfers(instance.problem, transfer);
      instance.problem.activation_limit = limit;
      instance.problem.objective = Objective::kMakespan;
      instance.id = fmt::format("{:02}-{}-p{}-m{}", i, placement, devices, microbatches);
    }
  }
  return instances;
}

}  // namespace pipesim::exact
