#include "sim/search/refine_blocking.h"

#include <boost/random/mersenne_twister.hpp>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/held_by_devices.h"
#include "sim/execution/spelling.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"
#include "sim/search/order.h"

namespace pipesim {
namespace {

// A pass simulated takes as long as so many evaluated (quickstart's 1F1B).
constexpr double kSimulatedPass = 20;
constexpr unsigned kFarthest = 8;  // places of a move

constexpr double kNone = std::numeric_limits<double>::infinity();

// Each W directly behind its B as one BW: so one call sends its gradient and receives what the next
// pass waits for.
Program with_backwards_joined(const Program& program) {
  PassLists lists;
  for (const std::vector<Pass>& from : program.lists()) {
    std::vector<Pass>& list = lists.emplace_back();
    for (const Pass& pass : from) {
      const bool joins = pass.kind == PassKind::kW && !list.empty() &&
                         list.back() == Pass{PassKind::kB, pass.chunk, pass.microbatch};
      if (joins) {
        list.back().kind = PassKind::kBW;
      } else {
        list.push_back(pass);
      }
    }
  }
  return {program.shape(),
          program.placement(),
          std::move(lists),
          {program.pairs().begin(), program.pairs().end()}};
}

// Moves a pass at random; false where it cannot move there.
bool move_any(Order& order, boost::random::mt19937_64& random) {
  const auto below = [&random](std::size_t n) { return static_cast<int>(random() % n); };
  const int device = below(order.words().size());
  const int from = below(order.words()[device].size());
  const int distance = 1 + below(kFarthest);
  const int to = (random() & 1) != 0 ? from + distance : from - distance;
  return to >= 0 && to < order.length(device) && order.move(device, from, to, kNone);
}

// Each W directly behind its B as one BW, or all apart, whichever is the shorter.
SimulatedOrder run_both(Case& made, const Program& order) {
  SimulatedOrder joined = simulated(made, with_backwards_joined(order));
  SimulatedOrder apart = simulated(made, with_backwards_apart(order));
  return joined.iteration <= apart.iteration ? joined : apart;
}

SimulatedOrder shortest_of(Case& made, std::span<const Program> starts) {
  SimulatedOrder best = run_both(made, starts.front());
  for (const Program& start : starts.subspan(1)) {
    SimulatedOrder other = run_both(made, start);
    if (other.iteration < best.iteration) best = std::move(other);
  }
  if (best.iteration < Seconds(kNone)) return best;
  return run_both(made, one_at_a_time(without_pairs(starts.front())));
}

}  // namespace

Seconds time_of(const Report& report, Objective objective) {
  return objective == Objective::kMakespan ? report.makespan_from_rest : report.cost;
}

SimulatedOrder simulated(Case& made, Program program) {
  made.choice.program = std::make_shared<const Program>(std::move(program));
  SimulatedOrder order{made.choice.program, Seconds(kNone), Seconds(kNone)};
  try {
    const Report report = simulate(made, nullptr, nullptr, Detail::kNumbers).report;
    order.iteration = report.iteration;
    order.time = time_of(report, made.problem.objective);
  } catch (const InfeasibleError&) {
    // Its devices wait for each other.
  }
  return order;
}

SimulatedOrder refine_blocking(const Case& like, std::span<const Program> starts,
                               const Problem& problem, Bytes limit, const RefineOptions& options) {
  Case made = like;
  SimulatedOrder best = shortest_of(made, starts);
  const std::shared_ptr<const Program> start = best.program;
  const Program& program = *start;
  const auto spelling = spelled(program, problem);
  if (!spelling || !(best.iteration < Seconds(kNone))) return best;
  Order order(problem, problem.shape.units(), limit.value() * kRounding, spelling->words,
              !program.pairs().empty(), spelling->spelling);
  if (!order.evaluate()) return best;
  const bool joined = program.same_order(with_backwards_joined(program));
  const Seconds bound = kRounding * options.bound.value_or(Seconds(0));
  auto words = spelling->words;
  boost::random::mt19937_64 random(options.seed);
  const double effort_of_trial = kSimulatedPass * static_cast<double>(program.size());
  double spent = 0;
  while (spent + effort_of_trial <= options.effort && best.time > bound && !options.stop()) {
    if (!move_any(order, random)) {
      spent += 1;
      continue;
    }
    spent += effort_of_trial;
    Program moved = program_of(problem, spelling->spelling, order.words());
    SimulatedOrder trial =
        simulated(made, joined ? with_backwards_joined(moved) : std::move(moved));
    if (trial.iteration <= best.iteration) {
      best = std::move(trial);
      words = order.words();
    } else {
      order.restart(words);
      order.evaluate();
    }
  }
  return best;
}

}  // namespace pipesim
