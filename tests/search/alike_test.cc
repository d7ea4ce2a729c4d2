// Pipelines of unlike devices on three placements (linear, looped and V-shape), with the optimum of
// each proven by CBC: the bound is near it, refinement and search reach it.
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/execution/evaluate.h"
#include "sim/read/scenario.h"
#include "sim/search/bound.h"
#include "sim/search/excluded.h"
#include "sim/search/refine.h"
#include "sim/search/search.h"
#include "tests/exact/instance.h"
#include "tests/sanitized.h"

namespace pipesim::alike_test {
namespace {

nlohmann::json alike() {
  nlohmann::json read;
  std::ifstream(std::string(PIPESIM_SOURCE_DIR) + "/tests/golden/data/exact/alike.json") >> read;
  return read.at("instances");
}

nlohmann::json proven() {
  nlohmann::json all = exact::proven_optima();
  for (auto& data : alike()) all.push_back(std::move(data));
  return all;
}

Scenario scenario_of(const nlohmann::json& data) {
  const int devices = data.at("devices").get<int>();
  const double parts = data.at("placement") == "linear" ? 1 : 2;
  const exact::Instance instance = exact::read_instance(data);
  const auto of_devices = [&](auto member) {
    std::vector<std::string> values;
    for (int d = 0; d < devices; ++d) {
      const StageCost& cost =
          instance.problem.stages[instance.problem.placement.virtual_stage(d, 0)];
      values.push_back(fmt::format("{} s", parts * (cost.*member).value()));
    }
    return fmt::format("[{}]", fmt::join(values, ", "));
  };
  const StageCost& first = instance.problem.stages.front();
  return read_scenario(YamlSource(
      "test",
      fmt::format("schedule: 1f1b\nparallel: {{pipeline_model_parallel_size: {}}}\n"
                  "batch: {{num_microbatches: {}}}\ncost: {{kind: given, forward: {}, "
                  "backward_input: {}, backward_weight: {}, transfer: {} s}}\n"
                  "memory: {{kind: given, activation: {} B, weight_stash: {} B}}\n",
                  devices, instance.problem.shape.microbatches, of_devices(&StageCost::forward),
                  of_devices(&StageCost::backward_input), of_devices(&StageCost::backward_weight),
                  data.at("transfer").get<double>(), parts * first.activation.value(),
                  parts * first.weight_stash.value())));
}

struct Near {
  int count = 0, within = 0;
  double worst = 0, slowest = 0;

  void add(const exact::Instance& instance, double optimum, bool exclude) {
    const Bytes limit = *instance.problem.activation_limit;
    const std::clock_t begin = std::clock();
    Seconds bound = lower_bound(instance.problem, limit);
    if (exclude) {
      bound = excluded_below(instance.problem, limit, bound, Seconds(optimum));
    }
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LE(bound.value(), optimum * (1 + 1e-9)) << instance.id;
    const double gap = optimum / bound.value() - 1;
    worst = std::max(worst, gap);
    slowest = std::max(slowest, took);
    within += gap <= 0.05 ? 1 : 0;
    ++count;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("within 5% of {} of {}, at worst {:.1f}% below; slowest {:.3f} s of CPU\n",
                       within, count, 100 * worst, slowest);
  }
};

TEST(ExcludedBound, IsNearProvenOptima) {
  Near plain, excluded;
  for (const auto& data : proven()) {
    const exact::Instance instance = exact::read_instance(data);
    plain.add(instance, data.at("cost").get<double>(), false);
    excluded.add(instance, data.at("cost").get<double>(), true);
  }
  fmt::print("the bound is {}with exclusion {}", plain.text(), excluded.text());
  EXPECT_EQ(excluded.count, 205);
  EXPECT_EQ(excluded.within, 205);
  EXPECT_GT(excluded.within, plain.within);
}

// Each pipeline reaches the least of three optima: from costs of devices, search has to choose the
// placement too.
TEST(Search, ReachesTheLeastOfThreePlacementsOptima) {
  std::map<std::string, std::vector<nlohmann::json>> pipelines;
  for (const auto& data : alike()) {
    pipelines[data.at("id").get<std::string>().substr(0, 2)].push_back(data);
  }
  int reached = 0;
  int all = 0;
  int bounded = 0;
  for (const auto& [id, placed] : testing::some(std::vector(pipelines.begin(), pipelines.end()))) {
    if (placed.size() < 3) continue;  // one was not proven
    double optimum = 1e30;
    for (const auto& each : placed) optimum = std::min(optimum, each.at("cost").get<double>());
    SearchOptions options;
    options.refinement.effort = 2e6;
    const Search search(scenario_of(placed.front()), options);
    const SearchResult result = search.at(Bytes(placed.front().at("limit").get<double>()));
    ASSERT_TRUE(result.best.has_value()) << id;
    EXPECT_GE(result.best->time.value() * (1 + 1e-9), optimum) << id;
    EXPECT_LE(result.best->time.value(), optimum * (1 + 1e-9)) << id;
    EXPECT_LE(result.bound.value(), optimum * (1 + 1e-9)) << id;
    reached += result.best->time.value() <= optimum * (1 + 1e-9) ? 1 : 0;
    bounded += optimum <= 1.05 * result.bound.value() ? 1 : 0;
    ++all;
  }
  fmt::print("search reaches {} of {} least optima; its bound is within 5% of {}\n", reached, all,
             bounded);
  EXPECT_EQ(all, testing::kSanitized ? 4 : 33);
  EXPECT_EQ(bounded, all);
}

// The best over all families is no worse than over some of them, with offload and recomputation or
// without.
TEST(Search, OverEverythingIsNeverWorseThanOverAPart) {
  const std::vector<std::vector<std::string>> parts{{"1f1b", "zb"},
                                                    {"best"},
                                                    {"v-search", "v-half"},
                                                    {"interleaved-1f1b", "gis"},
                                                    {"gpipe", "zb-2p"}};
  testing::Random random(7);
  int compared = 0;
  int shorter = 0;
  for (int round = 0; round < testing::rounds(30); ++round) {
    const int devices = random.integer(2, 5);
    const int microbatches = devices * random.integer(1, 4);
    const auto times = [&] {
      std::vector<std::string> values;
      for (int d = 0; d < devices; ++d)
        values.push_back(fmt::format("{} ms", random.integer(5, 20)));
      return fmt::format("[{}]", fmt::join(values, ", "));
    };
    // One after the other: in what order arguments are drawn depends on the compiler.
    const std::string forward = times();
    const std::string backward_input = times();
    const std::string backward_weight = times();
    const Scenario scenario = read_scenario(YamlSource(
        "test",
        fmt::format(
            "schedule: 1f1b\nparallel: {{pipeline_model_parallel_size: {}}}\n"
            "batch: {{num_microbatches: {}}}\ncost: {{kind: given, forward: {}, "
            "backward_input: {}, backward_weight: {}, transfer: 1 ms, copy_in: 4 ms, "
            "copy_out: 4 ms}}\n"
            "memory: {{kind: given, activation: 2 B, weight_stash: 1 B, checkpoint: 0.1 B}}\n",
            devices, microbatches, forward, backward_input, backward_weight)));
    SearchOptions options;
    options.refinement.effort = 3e5;
    options.offload = round % 3 == 1;
    options.recompute = round % 6 == 1;
    const Search everything(scenario, options);
    const Bytes limit = random.real(0.4, 1.6) * everything.unit();
    const SearchResult best = everything.at(limit);
    for (const auto& part : parts) {
      SearchOptions some = options;
      some.schedules = part;
      const SearchResult of_part = Search(scenario, some).at(limit);
      if (!of_part.best) continue;
      EXPECT_LE(best.best->time.value(), of_part.best->time.value() * (1 + 1e-9))
          << "round " << round << ' ' << part.front();
      shorter += best.best->time < of_part.best->time ? 1 : 0;
      ++compared;
    }
  }
  fmt::print("over everything: {} of {} shorter than over a part\n", shorter, compared);
  EXPECT_GE(compared, testing::rounds(100));
}

// One microbatch at a time, which keeps every limit, is the worst order to start from.
Program one_at_a_time(const Problem& problem) {
  const Placement& place = problem.placement;
  PassLists lists(static_cast<size_t>(problem.shape.devices));
  for (int i = 0; i < problem.shape.microbatches; ++i) {
    const auto add = [&](PassKind kind, int vs) {
      lists[place.device(vs)].push_back(make_pass(kind, i, place.chunk(vs)));
    };
    for (int vs = 0; vs < place.virtual_stages(); ++vs) add(PassKind::kF, vs);
    for (int vs = place.virtual_stages() - 1; vs >= 0; --vs) add(PassKind::kBW, vs);
  }
  return {problem.shape, place, std::move(lists)};
}

TEST(Refine, ReachesEveryPlacementsOptimumFromTheWorstOrder) {
  int reached = 0;
  const nlohmann::json& all = alike();
  for (const auto& data : testing::some(std::vector(all.begin(), all.end()))) {
    const exact::Instance instance = exact::read_instance(data);
    const Problem& problem = instance.problem;
    const Program refined =
        refine(one_at_a_time(problem), problem, *problem.activation_limit, {1, 4e6});
    const double time = time_of(evaluate(refined, problem), problem.objective).value();
    const double optimum = data.at("cost").get<double>();
    EXPECT_GE(time * (1 + 1e-9), optimum) << instance.id;
    EXPECT_LE(time, optimum * (1 + 1e-9)) << instance.id;
    reached += time <= optimum * (1 + 1e-9) ? 1 : 0;
  }
  fmt::print("refinement reaches {} optima of 101\n", reached);
}

}  // namespace
}  // namespace pipesim::alike_test
