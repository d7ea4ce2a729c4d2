#include "sim/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <thread>

#include "sim/core/thread_team.h"
#include "sim/execution/evaluate.h"
#include "sim/read/scenario.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/zero_bubble/profile.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim::zero_bubble {
namespace {

// Whose peak is the limit, at its own default limit.
struct Limit {
  const char* name;
  const char* schedule;
};

constexpr std::array<Limit, 5> kLimits{{{"ZB-1p", "zb-1p"},
                                        {"ZB-2p", "zb-2p"},
                                        {"ZB-V", "zb-v"},
                                        {"V-Half", "v-half"},
                                        {"V-Min", "v-min"}}};

Scenario scenario_of(const Profile& profile) {
  return read_scenario(
      YamlSource("profile", fmt::format(R"(
schedule: 1f1b
parallel: {{pipeline_model_parallel_size: {}}}
batch: {{num_microbatches: {}}}
cost: {{kind: given, per: device, forward: {} us, backward_input: {} us, backward_weight: {} us,
       transfer: {} us}}
memory: {{kind: given, per: device, activation: {} B, weight_stash: {} B}}
optimizer: {{sync: post_validation}}
)",
                                        profile.devices, profile.microbatches, profile.forward_us,
                                        profile.backward_us, profile.weight_us, profile.transfer_us,
                                        profile.activation(), profile.weight_stash())));
}

Bytes peak_of(const Limit& limit, const Profile& profile) {
  const Schedule& schedule = *find_schedule(limit.schedule);
  const Problem problem = make_problem(schedule, profile, false);
  return evaluate(schedule.plan(problem), problem).peak_activation();
}

double rate(Seconds cost, const Profile& profile) {
  const Seconds work((profile.forward_us + profile.backward_us + profile.weight_us) * 1e-6 *
                     profile.microbatches);
  const double idle = (cost - work) / cost;
  return idle > 1e-12 ? idle : 0;  // what rounding leaves is none
}

// Cost under a limit, or nothing when the schedule refuses it or needs more.
std::optional<Seconds> cost_within(Bytes limit, const Schedule& schedule, Problem problem) {
  if (schedule.memory_limit) problem.activation_limit = limit;
  if (schedule.refusal(problem)) return std::nullopt;
  const Evaluation result = evaluate(schedule.plan(problem), problem);
  for (const DeviceEvaluation& device : result.devices) {
    if (device.peak_activation > limit * (1 + 1e-12)) return std::nullopt;
  }
  return result.cost;
}

// The best of the published schedules.
struct Published {
  std::string schedule;
  Seconds cost;
};

std::optional<Published> best_published(Bytes limit, const Profile& profile) {
  std::optional<Published> best;
  for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb", "zb-v", "v-half",
                           "v-min", "1f1b-v", "v-search"}) {
    const Schedule& schedule = *find_schedule(name);
    const auto cost = cost_within(limit, schedule, make_problem(schedule, profile, false));
    if (cost && (!best || *cost < best->cost)) best = {name, *cost};
  }
  return best;
}

void fill(Cell& cell, const SearchResult& result, const std::optional<Published>& published,
          const Profile& profile) {
  constexpr double kAtBound = 1 + 1e-9;
  cell.must_agree = true;
  cell.may_be_lower = true;
  if (!result.best) {
    cell.note = "nothing fits";
    return;
  }
  if (published) {
    const bool at_bound = published->cost <= kAtBound * result.bound;
    cell.table = at_bound ? "Search, published at the bound" : "Search, published above the bound";
    cell.published = rate(published->cost, profile);
    cell.note = published->schedule + "; ";
  }
  cell.simulated = rate(result.best->cost, profile);
  cell.note += fmt::format("found: {}{}, bound {:.4f}", result.best->choice.name,
                           result.best->refined ? " refined" : "", rate(result.bound, profile));
}

// Runs every job once, on as many threads as the machine has.
void run_all(const std::vector<std::function<void()>>& jobs) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) jobs[i]();
  };
  std::vector<std::jthread> pool;
  for (int i = 1; i < available_threads(); ++i) pool.emplace_back(work);
  work();
}

// Figure 9: the lower of the two published curves at every limit.
void add_figure9(std::vector<Cell>& cells, std::vector<std::function<void()>>& jobs,
                 const YamlValue& figure, const std::vector<Profile>& profiles,
                 const std::vector<Search>& searches) {
  YamlMap map(figure);
  const auto limits = map.require("x_mem_limit_over_pMB", "memory limits").list();
  for (const YamlValue& column : map.require("columns", "one map per setting").list()) {
    YamlMap rates(column);
    const auto setting = read_setting(rates);
    const Profile* profile = find_profile(profiles, setting, ProfileSource::kChunks);
    const auto one = rates.require("ZB_bubble_rate", "rates").list();
    const auto two = rates.require("ZBV_bubble_rate", "rates").list();
    if (one.size() != limits.size() || two.size() != limits.size()) {
      column.fail("not as many rates as memory limits");
    }
    for (std::size_t i = 0; i < limits.size(); ++i) {
      Cell& cell = cells.emplace_back();
      cell.table = "Figure 9 search";
      cell.cell = fmt::format("{} limit {:.3f}", setting.text(), limits[i].number(0, 1e3));
      cell.published = std::min(one.at(i).number(-1, 1), two.at(i).number(-1, 1));
      cell.note = "not modelled: no profiled times for this setting in Table 9 and the like";
      if (profile == nullptr) continue;
      const Search& search = searches[static_cast<std::size_t>(profile - profiles.data())];
      jobs.emplace_back(
          [&search, profile, limit = limits[i].number(0, 1e3), at = cells.size() - 1, &cells] {
            cells[at].note.clear();
            fill(cells[at], search.at(limit * search.unit()), std::nullopt, *profile);
          });
    }
  }
}

}  // namespace

std::vector<Cell> compare_search(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "zero_bubble"), asked);
  YamlMap root(source.root());
  finish_tables(root);
  const auto profiles = read_profiles(root);
  if (profiles.empty()) root.value().fail("no profiled setting in this file");
  std::vector<Search> searches;
  for (const Profile& profile : profiles)
    searches.emplace_back(scenario_of(profile), SearchOptions{});
  std::vector<Cell> cells;
  std::vector<std::function<void()>> jobs;
  for (const Profile& profile : profiles) {
    const Search& search = searches[static_cast<std::size_t>(&profile - profiles.data())];
    for (const Limit& limit : kLimits) {
      Cell& cell = cells.emplace_back();
      cell.cell = fmt::format("{} p={} m={} {}", profile.model, profile.devices,
                              profile.microbatches, limit.name);
      jobs.emplace_back([&search, &profile, &limit, at = cells.size() - 1, &cells] {
        const Bytes bytes = peak_of(limit, profile);
        fill(cells[at], search.at(bytes), best_published(bytes, profile), profile);
      });
    }
  }
  if (const auto figure = root.find("figure9"))
    add_figure9(cells, jobs, *figure, profiles, searches);
  run_all(jobs);
  return cells;
}

}  // namespace pipesim::zero_bubble
