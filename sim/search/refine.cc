#include "sim/search/refine.h"

#include <algorithm>
#include <array>
#include <boost/random/mersenne_twister.hpp>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/execution/spelling.h"
#include "sim/planning/justify.h"
#include "sim/planning/room.h"
#include "sim/search/bound.h"
#include "sim/search/bound_like.h"
#include "sim/search/order.h"

namespace pipesim {
namespace {

using Words = std::vector<Order::Word>;

constexpr double kRefusedMove = 8;  // passes evaluated
constexpr double kReach = 3;        // mean distance of a move, in places
constexpr double kRound = 1000;     // least effort of one of several rounds, in programs evaluated
constexpr double kLeast = 300;      // likewise, of any moves: fewer were not seen to find anything
// First allowance of each round, in mean passes, in turn. A small one suits long programs; a large
// one escapes from orders that many small moves cannot leave.
constexpr std::array kAllowances{0.003, 0.3, 0.03, 1.0, 0.01, 0.1};

// Where every device stands when the B of microbatches `first` and `first + count` start on the
// first stage, or nothing when a device does not run every letter `count` times between.
std::optional<std::vector<std::pair<int, int>>> window(const Order& order, int letters, int first,
                                                       int count) {
  const double from = order.first_stage_backward(first);
  const double to = order.first_stage_backward(first + count);
  std::vector<std::pair<int, int>> cuts;
  std::vector<int> seen(letters);
  for (size_t d = 0; d < order.words().size(); ++d) {
    const int a = order.position_at(static_cast<int>(d), from);
    const int b = order.position_at(static_cast<int>(d), to);
    if (b - a != order.length(static_cast<int>(d)) / order.units() * count) {
      return std::nullopt;
    }
    std::ranges::fill(seen, 0);
    for (int i = a; i < b; ++i) ++seen[Order::letter_of(order.words()[d][i])];
    const auto other = [count](int n) { return n != 0 && n != count; };
    if (std::ranges::any_of(seen, other)) return std::nullopt;
    cuts.emplace_back(a, b);
  }
  return cuts;
}

// `count` microbatches less, out of the middle.
std::optional<Words> shortened(const Order& order, int letters, int count) {
  const int middle = (order.units() - count) / 2;
  for (const int shift : {0, 1, -1, 2, -2, 3, -3}) {
    const int first = middle + shift;
    if (first < 0 || first + count >= order.units()) continue;
    const auto cuts = window(order, letters, first, count);
    if (!cuts) continue;
    Words words = order.words();
    for (size_t d = 0; d < words.size(); ++d) {
      words[d].erase(words[d].begin() + (*cuts)[d].first, words[d].begin() + (*cuts)[d].second);
    }
    return words;
  }
  return std::nullopt;
}

// The steady microbatches [first, first + period) of `order` repeated for `count` microbatches
// more.
std::optional<Words> lengthened(const Order& order, int letters, int first, int period, int count) {
  const auto cuts = window(order, letters, first, period);
  if (!cuts) return std::nullopt;
  Words words;
  for (size_t d = 0; d < order.words().size(); ++d) {
    const auto& word = order.words()[d];
    const auto a = word.begin() + (*cuts)[d].first;
    const auto b = word.begin() + (*cuts)[d].second;
    Order::Word longer(word.begin(), b);
    for (int i = 0; i < count / period; ++i) longer.insert(longer.end(), a, b);
    longer.insert(longer.end(), b, word.end());
    words.push_back(std::move(longer));
  }
  return words;
}

// The best words seen, of which few devices change from one to the next.
class BestWords {
 public:
  explicit BestWords(const Words& words) : words_(words), changed_(words.size()) {}

  void changed(int device) { changed_[device] = 1; }
  void take(const Words& words) {
    for (size_t d = 0; d < words.size(); ++d) {
      if (changed_[d] != 0) words_[d] = words[d];
      changed_[d] = 0;
    }
  }
  [[nodiscard]] Words& words() { return words_; }

 private:
  Words words_;
  std::vector<std::uint8_t> changed_;  // since they were taken
};

// Tries one change of an order: a pass or block moves from one place to another. With blocks, one
// change in eight takes a block apart. The others first join the F and the backward at the two
// places; one in eight of these leaves a W out. On 40 random problems this mix did better than half
// as many joins.
bool try_change(Order& order, int device, int from, int to, double bound, std::uint64_t random) {
  if (order.has_blocks()) {
    const bool whole = (random >> 3 & 7) != 0;
    const bool forward_last = (random >> 6 & 1) != 0;
    const bool done = (random & 7) == 0 ? order.split(device, from, forward_last, bound)
                                        : order.join(device, from, to, whole, bound);
    if (done) return true;
  }
  return order.move(device, from, to, bound);
}

// Threshold accepting: moves of a few places, an allowance (of a mean pass) that falls to nothing.
// From an order that has been evaluated; returns the best words seen.
Words improve_once(Order& order, double most, const RefineOptions& options) {
  boost::random::mt19937_64 random(options.seed);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(n));
  };
  const auto fraction = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const auto evaluated_before = static_cast<double>(order.evaluated());
  const int devices = static_cast<int>(order.words().size());
  const double pass = order.cost() / order.longest();
  BestWords best(order.words());
  double least = order.score();
  double spent = 0;
  for (double tries = 0; spent < options.effort; ++tries) {
    constexpr long kTriesBetween = 256;
    if (static_cast<long>(tries) % kTriesBetween == 0 && options.stop()) break;
    // A move that is refused without an evaluation costs as much as a few passes.
    spent = static_cast<double>(order.evaluated()) - evaluated_before + kRefusedMove * tries;
    const double allowance = most * pass * std::max(0.0, 1 - spent / options.effort);
    const int device = below(devices);
    const int from = below(order.length(device));
    const int distance = 1 + static_cast<int>(-kReach * std::log(1 - fraction()));
    const int to = (random() & 1) != 0 ? from + distance : from - distance;
    if (to < 0 || to >= order.length(device)) continue;
    const double bound = order.score() - allowance * std::log(1 - fraction());
    const std::uint64_t which = order.has_blocks() ? random() : 0;
    if (!try_change(order, device, from, to, bound, which)) continue;
    best.changed(device);
    if (order.score() >= least) continue;
    least = order.score();
    best.take(order.words());
    if (order.cost() <= options.bound->value()) break;
  }
  return std::move(best.words());
}

// The order justified, where it costs less so; it is evaluated, and the order stands there.
// Justification knows only microbatches that cost alike, F, B and W, one direction and no blocks.
Words justified(Order& order, const Problem& problem, const Spelling& spelling, double limit) {
  Words words = order.words();
  const bool plain = spelling.units.empty() && spelling.recomputes.empty();
  if (!plain || !problem.kinds.empty() || order.has_blocks()) return words;
  const double cost = order.cost();
  PassLists lists = program_of(problem, spelling, words).lists();
  Justifier justify(problem);
  justify.set_limit(Bytes(limit));
  justify.run(lists);
  justify.save(lists);
  order.restart(spelled({problem.shape, problem.placement, std::move(lists)}, problem)->words);
  if (order.evaluate() && order.cost() < cost) return order.words();
  order.restart(words);
  order.evaluate();
  return words;
}

// How often moves are tried with so many programs evaluated.
int rounds_of(double evaluations) {
  if (evaluations < kLeast) return 0;
  return static_cast<int>(
      std::clamp(evaluations / kRound, 1.0, static_cast<double>(kAllowances.size())));
}

// In rounds, where the effort is enough for several: from the start and from the best in turn, the
// first best being the start justified. From an order that has been evaluated, and leaves it at
// another. Ends at `options.bound`, which is given.
Words improve(Order& order, const Problem& problem, const Spelling& spelling, double limit,
              RefineOptions options) {
  double passes = 0;
  for (const auto& word : order.words()) passes += static_cast<double>(word.size());
  const int rounds = rounds_of(options.effort / passes);
  const double bound = options.bound->value();
  options.effort /= std::max(rounds, 1);
  const Words start = order.words();
  Words best = justified(order, problem, spelling, limit);
  double score = order.score();
  double cost = order.cost();
  for (int round = 0; round < rounds && cost > bound; ++round, ++options.seed) {
    order.restart(rounds > 1 && round % 2 == 0 ? start : best);
    order.evaluate();
    Words tried = improve_once(order, kAllowances.at(round), options);
    order.restart(tried);
    if (!order.evaluate() || order.score() >= score) continue;
    best = std::move(tried);
    score = order.score();
    cost = order.cost();
  }
  return best;
}

// Refines a program of few microbatches and repeats its steady state for all of them. Leaves
// `order` at another order.
std::optional<Words> improve_short(Order& order, const Problem& problem, const Program& program,
                                   const Spelling& spelling, double limit, RefineOptions options) {
  const int letters = spelling.kinds * problem.shape.chunks;
  const int enough = 3 * problem.shape.devices + 2;
  const int excess = order.units() - enough;
  // A steady state repeats where microbatches cost alike.
  if (excess < problem.shape.devices || !problem.kinds.empty() || !spelling.units.empty()) {
    return std::nullopt;
  }
  const auto cut = shortened(order, letters, excess);
  if (!cut) return std::nullopt;
  Order few(problem, enough, limit, *cut, order.has_blocks(), spelling);
  if (!few.evaluate()) return std::nullopt;
  Problem shorter = problem;
  shorter.shape.microbatches = enough;
  options.bound = kRounding * bound_like(program, shorter, Bytes(limit), order.has_blocks());
  few.restart(improve(few, shorter, spelling, limit, std::move(options)));
  if (!few.evaluate()) return std::nullopt;
  std::optional<Words> best;
  std::vector<Words> tried;  // a steady state that repeats itself comes out alike from many places
  double least = order.cost();
  for (int first = enough / 3; first <= 2 * enough / 3; ++first) {
    for (const int period : {1, 2, 3, 4}) {
      if (excess % period != 0 || first + period >= enough) continue;
      auto words = lengthened(few, letters, first, period, excess);
      if (!words || std::ranges::find(tried, *words) != tried.end()) continue;
      order.restart(*words);
      tried.push_back(std::move(*words));
      if (!order.evaluate(least) || order.cost() >= least) continue;
      least = order.cost();
      best = tried.back();
    }
  }
  return best;
}

}  // namespace

Program refine(const Program& program, const Problem& problem, Bytes limit,
               const RefineOptions& options) {
  auto start = spelled(program, problem);
  if (!start) return program;
  const Spelling& spelling = start->spelling;
  const bool blocks = !program.pairs().empty();
  const double bytes = limit.value() * kRounding;
  Order order(problem, problem.shape.units(), bytes, start->words, blocks, spelling);
  if (!order.evaluate()) return program;
  RefineOptions longer = options;  // for the order of all microbatches
  longer.seed += 1;
  longer.effort /= 2;
  longer.bound =
      kRounding * (options.bound ? *options.bound : bound_like(program, problem, limit, blocks));
  if (order.cost() <= longer.bound->value()) return program_of(problem, spelling, start->words);
  order.restart(improve_short(order, problem, program, spelling, bytes, options)
                    .value_or(std::move(start->words)));
  if (!order.evaluate()) return program;
  return program_of(problem, spelling, improve(order, problem, spelling, bytes, std::move(longer)));
}

}  // namespace pipesim
