#include "sim/search/refine_blocking.h"

#include <boost/random/mersenne_twister.hpp>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/spelling.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/room.h"
#include "sim/search/order.h"

namespace pipesim {
namespace {

// A pass simulated takes as long as so many evaluated (quickstart's 1F1B).
constexpr double kSimulatedPass = 20;
constexpr unsigned kFarthest = 8;  // places of a move

constexpr double kNone = std::numeric_limits<double>::infinity();

// The case with this program as it is.
Timed timed_as_it_is(const Case& made, Program program) {
  Timed result{made, Seconds(kNone)};
  result.made.choice.program = std::make_shared<const Program>(std::move(program));
  try {
    result.seconds = simulate(result.made, nullptr, nullptr, Detail::kNumbers).report.iteration;
  } catch (const InfeasibleError&) {
    // Its devices wait for each other.
  }
  return result;
}

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

}  // namespace

Timed timed(const Case& made, const Program& order) {
  Timed joined = timed_as_it_is(made, with_backwards_joined(order));
  Timed apart = timed_as_it_is(made, with_backwards_apart(order));
  return joined.seconds <= apart.seconds ? std::move(joined) : std::move(apart);
}

Timed refine_blocking(const Timed& start, const Problem& problem, Bytes limit,
                      const RefineOptions& options) {
  const Program& program = *start.made.choice.program;
  const auto from = spelled(program, problem);
  if (!from) return start;
  Order order(problem, problem.shape.units(), limit.value() * kRounding, from->words,
              !program.pairs().empty(), from->spelling);
  if (!order.evaluate()) return start;
  const bool joined = program.same_order(with_backwards_joined(program));
  Timed best = start;
  auto words = from->words;
  boost::random::mt19937_64 random(options.seed);
  const double each = kSimulatedPass * static_cast<double>(program.size());
  for (double spent = 0; spent + each <= options.effort && !options.stop();) {
    if (!move_any(order, random)) {
      spent += 1;
      continue;
    }
    spent += each;
    Program moved = program_of(problem, from->spelling, order.words());
    Timed trial =
        timed_as_it_is(best.made, joined ? with_backwards_joined(moved) : std::move(moved));
    if (trial.seconds <= best.seconds) {
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
