#include "sim/prepare/microbatch_order.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_offload.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim {
namespace {

using Order = std::vector<int>;

constexpr size_t kCandidates = 200;
constexpr size_t kPasses = 10'000'000;

Order as_given(const Problem& problem) {
  Order order(static_cast<size_t>(problem.shape.microbatches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order sorted(const Problem& problem, bool longest_first) {
  const std::vector<double> works = works_of_microbatches(problem);
  Order order = as_given(problem);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return longest_first ? works[a] > works[b] : works[a] < works[b];
  });
  return order;
}

// Microbatches of like work together, by Lloyd's algorithm from evenly spread ones; in each as they
// stand.
std::vector<Order> clusters_of(const Problem& problem, size_t count) {
  const std::vector<double> works = works_of_microbatches(problem);
  const Order by_work = sorted(problem, false);
  std::vector<double> centres;
  for (size_t i = 0; i < count; ++i) {
    centres.push_back(works[by_work[(2 * i + 1) * by_work.size() / (2 * count)]]);
  }
  constexpr int kRounds = 32;
  std::vector<Order> clusters;
  for (int round = 0; round < kRounds; ++round) {
    clusters.assign(count, {});
    for (const int each : as_given(problem)) {
      const auto nearest = std::ranges::min_element(
          centres, {}, [&](double centre) { return std::abs(centre - works[each]); });
      clusters[static_cast<size_t>(nearest - centres.begin())].push_back(each);
    }
    for (size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (const int each : clusters[i]) sum += works[each];
      if (!clusters[i].empty()) centres[i] = sum / static_cast<double>(clusters[i].size());
    }
  }
  return clusters;
}

class MicrobatchOrders {
 public:
  explicit MicrobatchOrders(const Case& made)
      : choice_(made.choice),
        given_(made.problem),
        problem_(made.problem),
        program_(program_on_device(choice_, given_)),
        planned_anew_(!choice_.program && schedule_of(choice_).each_unit),
        copied_anew_(awaits_offload(*program_, given_)) {
    left_ = std::max(kCandidates, kPasses / std::max<size_t>(1, program_->size()));
  }

  // True if the order is better than all tried before it.
  bool take(const Order& order) {
    if (left_ == 0) return false;
    --left_;
    problem_.kind_of_unit = kinds_in_order(given_, order);
    const Evaluation now = evaluate(*program(), problem_);
    const Bytes peak = now.peak_activation();
    const bool fits = !given_.activation_limit || is_within(peak, *given_.activation_limit);
    const Score score{fits ? 0 : peak.value(), now.makespan.value()};
    if (score >= best_score_) return false;
    best_score_ = score;
    best_ = order;
    return true;
  }

  // DynaPipe: every order of at most four clusters (three where there are many microbatches), or of
  // the microbatches themselves where they are as few.
  void take_clusters() {
    const auto microbatches = static_cast<size_t>(given_.shape.microbatches);
    const size_t count = std::min<size_t>(microbatches, microbatches > 20 ? 3 : 4);
    std::vector<Order> clusters = clusters_of(given_, count);
    if (microbatches == count) {
      for (size_t i = 0; i < count; ++i) clusters[i] = {static_cast<int>(i)};
    }
    Order permutation(count);
    std::iota(permutation.begin(), permutation.end(), 0);
    do {
      Order order;
      for (const int each : permutation) {
        order.insert(order.end(), clusters[each].begin(), clusters[each].end());
      }
      take(order);
    } while (std::ranges::next_permutation(permutation).found);
    take(as_given(given_));
  }

  // Exchanges of two microbatches, as long as one is better.
  void improve() {
    for (bool better = true; better && left_ > 0;) {
      better = false;
      for (size_t a = 0; a < best_.size(); ++a) {
        for (size_t b = a + 1; b < best_.size() && left_ > 0; ++b) better |= exchange(a, b);
      }
    }
  }

  [[nodiscard]] const Order& best() const { return best_; }

 private:
  using Score = std::pair<double, double>;  // what is above the limit, seconds

  bool exchange(size_t a, size_t b) {
    Order other = best_;
    std::swap(other[a], other[b]);
    return take(other);
  }

  // The program for the microbatches in problem_.
  std::shared_ptr<const Program> program() {
    if (planned_anew_) program_ = program_on_device(choice_, problem_);
    return copied_anew_ ? offloaded(choice_, *program_, problem_) : program_;
  }

  const ScheduleChoice& choice_;
  const Problem& given_;
  Problem problem_;
  std::shared_ptr<const Program> program_;  // without copies that are planned behind it
  bool planned_anew_;                       // the order of passes follows that of microbatches
  bool copied_anew_;                        // copies to the host follow it
  size_t left_ = 0;
  Order best_;
  Score best_score_{std::numeric_limits<double>::infinity(), 0};
};

Order tried(const Case& made, bool search) {
  MicrobatchOrders tries(made);
  if (search) {
    for (const bool longest_first : {true, false}) tries.take(sorted(made.problem, longest_first));
  }
  tries.take_clusters();
  if (search) tries.improve();
  return tries.best();
}

Order asked_order(const Case& made, MicrobatchOrder asked) {
  switch (asked) {
    case MicrobatchOrder::kLongestFirst:
      return sorted(made.problem, true);
    case MicrobatchOrder::kShortestFirst:
      return sorted(made.problem, false);
    case MicrobatchOrder::kDynaPipe:
      return tried(made, false);
    case MicrobatchOrder::kSearch:
      return tried(made, true);
    case MicrobatchOrder::kListed:
      return made.scenario->batch.listed_order();
    case MicrobatchOrder::kGiven:
      break;
  }
  return as_given(made.problem);
}

Case redrawn(const Case& made, std::uint64_t seed) {
  Scenario scenario = *made.scenario;
  draw_batch(scenario, seed);
  const auto shared = std::make_shared<const Scenario>(std::move(scenario));
  return batch_case(outline_of(shared, made.choice), made.layout ? &*made.layout : nullptr);
}

}  // namespace

std::string order_text(const std::vector<int>& order) {
  return fmt::format("batch.order=[{}]", fmt::join(order, ","));
}

void order_microbatches(Case& made, MicrobatchOrder asked) {
  if (asked == MicrobatchOrder::kGiven || made.problem.kinds.empty()) return;
  made.microbatch_order = asked_order(made, asked);
  made.problem.kind_of_unit = kinds_in_order(made.problem, made.microbatch_order);
}

Case batch_case(Outline outline, const Layout* balanced) {
  Case made = make_case(std::move(outline), balanced);
  const Batch& batch = made.scenario->batch;
  order_microbatches(made, batch.order());
  if (batch.draws() > 1) made.redrawn = redrawn;
  return made;
}

}  // namespace pipesim
