#include "sim/search/search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <thread>

#include "sim/core/error.h"
#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/schedule.h"
#include "sim/search/bound.h"

namespace pipesim {
namespace {

constexpr double kRounding = 1 + 1e-12;

Found measure(std::string schedule, const Problem& problem,
              std::shared_ptr<const Program> program) {
  Found found;
  found.schedule = std::move(schedule);
  found.problem = problem;
  found.program = std::move(program);
  const Evaluation result = evaluate(*found.program, problem);
  found.cost = result.cost;
  found.makespan = result.makespan;
  found.bubble_rate = result.bubble_rate();
  for (const DeviceEvaluation& device : result.devices) {
    found.peak = std::max(found.peak, device.peak_activation);
  }
  return found;
}

// Less cost first, then less memory; equal ones stay in the order of the registry.
bool better(const Found& a, const Found& b) {
  return a.cost < b.cost || (a.cost == b.cost && a.peak < b.peak);
}

bool fits(const Found& found, Bytes limit) { return found.peak <= kRounding * limit; }

}  // namespace

Search::Search(Scenario scenario, SearchOptions options)
    : scenario_(std::move(scenario)), options_(std::move(options)) {
  if (!knows_memory(scenario_)) {
    scenario_.memory.emplace();
    scenario_.memory->activation = scenario_.memory->weight_stash = {Bytes(1)};
  }
  for (const Schedule* schedule : schedules()) {
    if (!options_.schedules.empty() &&
        std::ranges::find(options_.schedules, schedule->name) == options_.schedules.end()) {
      continue;
    }
    for (int chunks = schedule->min_chunks;
         chunks <= std::min(schedule->max_chunks, options_.max_chunks); ++chunks) {
      ScheduleChoice choice;
      choice.name = schedule->name;
      choice.chunks = chunks;
      add(choice, schedule->memory_limit);
    }
  }
  for (const Family& family : families_) {
    unit_ = std::max(unit_, family.problem.shape.devices * family.problem.device_activation());
  }
}

void Search::add(const ScheduleChoice& choice, bool takes_limit) {
  if (find_schedule(choice.name)->default_splits > options_.max_splits) {
    left_out_.push_back(choice.name + ": splits microbatches along the sequence");
    return;
  }
  try {
    Family family{choice, for_planning(make_problem(scenario_, choice)), std::nullopt};
    if (family.problem.placement.directions() > 1) {
      left_out_.push_back(choice.name + ": holds two copies of the model");
      return;
    }
    if (!takes_limit) {
      family.fixed = measure(choice.name, family.problem, make_program(choice, family.problem));
    }
    families_.push_back(std::move(family));
  } catch (const std::runtime_error& error) {  // InputError, InfeasibleError
    const auto* input = dynamic_cast<const InputError*>(&error);
    const std::string reason = error.what();
    // Without the place, which is not in the scenario.
    left_out_.push_back(fmt::format(
        "{}: {}", choice.name, input == nullptr ? reason : reason.substr(reason.find(": ") + 2)));
  }
}

std::vector<Found> Search::candidates(Bytes limit) const {
  std::vector<Found> all;
  for (const Family& family : families_) {
    if (family.fixed) {
      if (fits(*family.fixed, limit)) all.push_back(*family.fixed);
      continue;
    }
    Problem problem = family.problem;
    problem.activation_limit = limit;
    try {
      Found found = measure(family.choice.name, problem, make_program(family.choice, problem));
      if (fits(found, limit)) all.push_back(std::move(found));
    } catch (const InfeasibleError&) {
      continue;  // not under this limit
    }
  }
  std::ranges::stable_sort(all, better);
  return all;
}

// Families of one placement have one problem and one bound.
Seconds Search::bound(Bytes limit) const {
  std::optional<Seconds> least;
  for (size_t i = 0; i < families_.size(); ++i) {
    const Problem& problem = families_[i].problem;
    const bool seen =
        std::any_of(families_.begin(), families_.begin() + static_cast<std::ptrdiff_t>(i),
                    [&problem](const Family& earlier) {
                      return earlier.problem.shape == problem.shape &&
                             earlier.problem.placement == problem.placement;
                    });
    if (seen) continue;
    const Seconds one = lower_bound(problem, limit);
    least = least ? std::min(*least, one) : one;
  }
  return least.value_or(Seconds(0));
}

SearchResult Search::at(Bytes limit) const { return at(limit, true); }

SearchResult Search::at(Bytes limit, bool look) const {
  constexpr size_t kRefined = 2;
  SearchResult result;
  result.limit = limit;
  result.bound = bound(limit);
  if (!look) return result;
  std::vector<Found> all = candidates(limit);
  if (all.empty()) return result;
  result.registered = result.best = all.front();
  for (size_t i = 0; options_.refine && i < std::min(all.size(), kRefined); ++i) {
    auto program = std::make_shared<const Program>(
        refine(*all[i].program, all[i].problem, limit, options_.refinement));
    Found refined = measure(all[i].schedule, all[i].problem, std::move(program));
    refined.refined = true;
    if (fits(refined, limit) && refined.cost < result.best->cost) result.best = std::move(refined);
  }
  return result;
}

std::vector<SearchResult> Search::frontier(int points) const {
  const int devices = scenario_.parallel.pipeline;
  const Bytes least = unit_ / devices;
  // With three times p microbatches no schedule waits for memory.
  const double most = std::min<double>(scenario_.batch.microbatches, 3.0 * devices);
  Bytes top = most * least;
  if (const auto all = candidates(top); !all.empty()) top = std::min(top, all.front().peak);
  // No limit up to `top` lets anything be shorter: who reaches it need not be sought again.
  const Seconds least_cost = kRounding * bound(top);
  std::vector<SearchResult> results(static_cast<size_t>(points));
  std::atomic<int> next = 0;
  std::atomic<int> solved = points;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (int i = next++; i < points && !failed; i = next++) {
      try {
        const double part = points == 1 ? 1.0 : static_cast<double>(i) / (points - 1);
        SearchResult& result = results[static_cast<size_t>(i)];
        result = at(least + part * (top - least), i < solved);
        if (result.best && result.best->cost <= least_cost) {
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
  for (size_t i = 1; i < results.size(); ++i) {
    const auto& before = results[i - 1].best;
    if (before && (!results[i].best || before->cost <= results[i].best->cost)) {
      results[i].best = before;
    }
    const auto& known = results[i - 1].registered;
    if (known && (!results[i].registered || known->cost <= results[i].registered->cost)) {
      results[i].registered = known;
    }
  }
  return results;
}

}  // namespace pipesim
