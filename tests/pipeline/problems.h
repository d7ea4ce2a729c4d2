// Problems and random programs for the tests of several folders.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/pipeline/unequal_units.h"

namespace pipesim {

// How gtest writes a quantity in its messages.
template <int T, int D, int W, int E>
void PrintTo(Quantity<T, D, W, E> quantity, std::ostream* out) {
  *out << quantity.value();
}

}  // namespace pipesim

namespace pipesim::testing {

struct Times {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double transfer = 0;
};

// A boundary between two chunks of one device is free, as a Problem requires.
inline void set_transfers(Problem& problem, double seconds) {
  const Placement& place = problem.placement;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const int down = place.downstream(vs);
    const bool crosses = down >= 0 && place.device(vs) != place.device(down);
    problem.stages[vs].transfer = Seconds(crosses ? seconds : 0);
  }
}

// Equal stages; one unit of activation memory per microbatch and stage, held until its W has run.
inline Problem make_problem(const Shape& shape, Placement placement, const Times& times = {}) {
  Problem problem;
  problem.shape = shape;
  problem.placement = std::move(placement);
  StageCost cost;
  cost.forward = Seconds(times.forward);
  cost.backward_input = Seconds(times.backward_input);
  cost.backward_weight = Seconds(times.backward_weight);
  cost.activation = Bytes(1);
  cost.weight_stash = Bytes(1);
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  set_transfers(problem, times.transfer);
  return problem;
}

inline Problem make_problem(const Shape& shape, const Times& times = {}) {
  return make_problem(shape, Placement::looped(shape.devices, shape.chunks), times);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  int integer(int from, int to) {
    return boost::random::uniform_int_distribution<int>(from, to)(generator_);
  }
  double real(double from, double to) {
    return boost::random::uniform_real_distribution<double>(from, to)(generator_);
  }
  bool coin() { return integer(0, 1) == 1; }

 private:
  boost::random::mt19937_64 generator_;
};

// Stages, boundaries and bytes all different; whole numbers of seconds on request, so that sums are
// exact in any order.
inline Problem random_problem(Random& random, const Shape& shape, Placement placement, bool whole) {
  Problem problem = make_problem(shape, std::move(placement));
  const auto seconds = [&random, whole](int from, int to) {
    return Seconds(whole ? random.integer(from, to) : random.real(from, to));
  };
  for (StageCost& cost : problem.stages) {
    cost.forward = seconds(1, 20);
    cost.backward_input = seconds(1, 20);
    cost.backward_weight = seconds(1, 20);
    cost.overlapped = seconds(20, 50);
    cost.activation = Bytes(random.integer(10, 20));
    cost.weight_stash = Bytes(random.integer(0, 10));
    cost.checkpoint = Bytes(random.integer(0, 10));
    if (random.coin()) cost.recompute = seconds(1, 20);
  }
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    const int down = problem.placement.downstream(vs);
    if (down < 0 || problem.placement.device(vs) == problem.placement.device(down)) continue;
    problem.stages[vs].transfer = seconds(0, 5);
  }
  return problem;
}

// Blocks take 0.5 to 1 of their passes, and no less than either. Microbatches cost alike.
inline Problem random_problem_with_blocks(Random& random, const Shape& shape, Placement placement) {
  Problem problem = random_problem(random, shape, std::move(placement), random.coin());
  for (StageCost& stage : problem.stages) {
    const Seconds bw = stage.backward_input + stage.backward_weight;
    stage.overlapped =
        std::max(std::max(stage.forward, bw), random.real(0.5, 1) * (stage.forward + bw));
  }
  problem.kinds.clear();
  problem.kind_of_unit.clear();
  return problem;
}

// A kind for every unit: stage costs times its factor.
inline void set_factors(Problem& problem, const std::vector<double>& factors) {
  std::vector<UnitKind> kinds;
  std::vector<std::uint32_t> numbers;
  for (const double factor : factors) {
    numbers.push_back(static_cast<std::uint32_t>(kinds.size()));
    UnitKind& kind = kinds.emplace_back(UnitKind{factor, {}});
    for (const StageCost& stage : problem.stages) kind.stages.push_back(scaled(stage, factor));
  }
  set_kinds(problem, std::move(kinds), std::move(numbers));
}

// Halves from 1/2 to 3, not all the same.
inline std::vector<double> random_factors(Random& random, size_t count) {
  std::vector<double> factors;
  for (size_t i = 0; i < count; ++i) factors.push_back(random.integer(1, 6) / 2.0);
  if (factors.size() > 1) factors.back() = factors.front() + 0.5;
  return factors;
}

// Builds a program by executing passes in a random order that respects what they wait for, so that
// it cannot deadlock. Backward passes are whole or split and, on request, overlapped with a
// forward; some virtual stages recompute.
class RandomProgram {
 public:
  RandomProgram(Random& random, const Shape& shape, const Placement& place, bool overlap)
      : random_(random),
        shape_(shape),
        place_(place),
        overlap_(overlap),
        lists_(place.devices()),
        done_(place.virtual_stages() * shape.units()),
        recomputes_(place.virtual_stages()) {
    for (size_t vs = 0; vs < recomputes_.size(); ++vs) recomputes_[vs] = random.integer(0, 2) == 0;
  }

  Program make() && {
    for (auto ready = ready_passes(); !ready.empty(); ready = ready_passes()) {
      append(ready[random_.integer(0, static_cast<int>(ready.size()) - 1)], ready);
    }
    return {shape_, place_, std::move(lists_), std::move(pairs_)};
  }

 private:
  struct Done {
    bool forward = false, recompute = false, backward = false, weight = false;
  };
  struct Ready {
    int device;
    Pass pass;
  };

  Done& done(int vs, int unit) { return done_[vs * shape_.units() + unit]; }
  bool forward_ready(int vs, int unit) {
    if (done(vs, unit).forward) return false;
    if (unit % shape_.splits > 0 && !done(vs, unit - 1).forward) return false;
    return place_.upstream(vs) < 0 || done(place_.upstream(vs), unit).forward;
  }
  bool recompute_ready(int vs, int unit) {
    return recomputes_[vs] && done(vs, unit).forward && !done(vs, unit).recompute;
  }
  bool backward_ready(int vs, int unit) {
    if (done(vs, unit).backward || !done(vs, unit).forward) return false;
    if (recompute_ready(vs, unit)) return false;
    if (unit % shape_.splits + 1 < shape_.splits && !done(vs, unit + 1).backward) return false;
    return place_.downstream(vs) < 0 || done(place_.downstream(vs), unit).backward;
  }

  std::vector<Ready> ready_passes() {
    std::vector<Ready> ready;
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      const auto add = [&](PassKind kind, int unit) {
        ready.push_back({place_.device(vs), make_pass(kind, unit, place_.chunk(vs))});
      };
      for (int unit = place_.first_unit(vs, shape_.units());
           unit < place_.end_unit(vs, shape_.units()); ++unit) {
        if (forward_ready(vs, unit)) add(PassKind::kF, unit);
        if (recompute_ready(vs, unit)) add(PassKind::kR, unit);
        if (backward_ready(vs, unit)) add(random_.coin() ? PassKind::kB : PassKind::kBW, unit);
        if (done(vs, unit).backward && !done(vs, unit).weight) add(PassKind::kW, unit);
      }
    }
    return ready;
  }

  void append(const Ready& chosen, const std::vector<Ready>& ready) {
    auto& list = lists_[chosen.device];
    mark(chosen);
    if (overlap_ && chosen.pass.kind == PassKind::kF) {
      for (const Ready& other : ready) {
        if (other.device != chosen.device || !runs_beside_forward(other.pass.kind)) continue;
        mark(other);
        list.push_back(make_pass(PassKind::kFB, static_cast<int>(pairs_.size())));
        pairs_.push_back({chosen.pass, other.pass});
        return;
      }
    }
    list.push_back(chosen.pass);
  }

  void mark(const Ready& ran) {
    Done& state = done(place_.virtual_stage(ran.device, ran.pass.chunk),
                       static_cast<int>(ran.pass.microbatch));
    switch (ran.pass.kind) {
      case PassKind::kF:
        state.forward = true;
        break;
      case PassKind::kR:
        state.recompute = true;
        break;
      case PassKind::kB:
        state.backward = true;
        break;
      case PassKind::kW:
        state.weight = true;
        break;
      default:
        state.backward = state.weight = true;
    }
  }

  Random& random_;
  const Shape& shape_;
  const Placement& place_;
  bool overlap_;
  PassLists lists_;
  std::vector<OverlappedPair> pairs_;
  std::vector<Done> done_;
  std::vector<bool> recomputes_;  // by virtual stage
};

// Every device holds a stage, and some hold more.
inline Placement unequal_placement(Random& random, int devices) {
  std::vector<int> device_of;
  for (int device = 0; device < devices; ++device) device_of.push_back(device);
  for (int more = random.integer(1, 4); more > 0; --more) {
    const auto at = device_of.begin() + random.integer(0, static_cast<int>(device_of.size()));
    device_of.insert(at, random.integer(0, devices - 1));
  }
  return Placement::custom(device_of);
}

struct RandomCase {
  Problem problem;
  Program program;
};

// A small random program on a random placement, with its problem.
inline RandomCase random_case(Random& random, bool whole_seconds = false) {
  const int devices = random.integer(1, 5);
  const int kind = random.integer(0, 3);
  Placement place = kind == 0   ? Placement::looped(devices, random.integer(1, 3))
                    : kind == 1 ? Placement::vee(devices)
                    : kind == 2 ? Placement::bidirectional(devices)
                                : unequal_placement(random, devices);
  const Shape shape{.devices = devices,
                    .chunks = place.chunks(),
                    .microbatches = 2 * random.integer(1, 3),
                    .splits = random.integer(1, 2)};
  Problem problem = random_problem(random, shape, place, whole_seconds);
  Program program = RandomProgram(random, shape, place, random.coin()).make();
  return {std::move(problem), std::move(program)};
}

}  // namespace pipesim::testing
