// The limits of a frontier, on as many threads as the machine has.
#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <thread>

#include "sim/search/bound.h"
#include "sim/search/search.h"

namespace pipesim {

std::vector<SearchResult> Search::frontier(int points) const {
  const int devices = scenario_.parallel.pipeline;
  const Bytes least = unit_ / devices;
  // With three times p microbatches no schedule waits for memory.
  const double most = std::min<double>(scenario_.batch.microbatches, 3.0 * devices);
  Bytes top = most * least;
  std::optional<Found> without_room;
  if (const auto all = candidates(top, Plans::kAtLimit, without_room); !all.empty())
    top = std::min(top, all.front().peak);
  // No limit up to `top` lets anything be shorter: who reaches it need not be sought again.
  const Seconds least_time = kRounding * bound(top);
  std::vector<SearchResult> results(points);
  std::atomic<int> next = 0;
  std::atomic<int> solved = points;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (int i = next++; i < points && !failed; i = next++) {
      try {
        const double part = points == 1 ? 1.0 : static_cast<double>(i) / (points - 1);
        SearchResult& result = results[i];
        result = at(least + part * (top - least), i < solved ? Plans::kAtLimit : Plans::kNone);
        if (result.best && result.best->time <= least_time) {
          for (int now = solved; i < now && !solved.compare_exchange_weak(now, i);) continue;
        }
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      pool.emplace_back(work);
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
  // Behind the first that no memory would make shorter nothing counts: how much of it was sought
  // depends on the threads.
  const auto done = std::ranges::find_if(results, [least_time](const SearchResult& result) {
    return result.best && result.best->time <= least_time;
  });
  for (auto i = results.begin(); i != results.end(); ++i) {
    if (i > done) i->best = i->registered = std::nullopt;
    if (i == results.begin()) continue;
    for (const auto which : {&SearchResult::best, &SearchResult::registered}) {
      const auto& before = *std::prev(i).*which;
      auto& now = *i.*which;
      const bool ended = i > done && which == &SearchResult::registered;
      if (before && !ended && (!now || before->time <= now->time)) now = before;
    }
  }
  return results;
}

}  // namespace pipesim
