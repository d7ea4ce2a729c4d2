// Search over the free parameters of described schedules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/search/search.h"
#include "tests/folder.h"

namespace pipesim::described_test {
namespace {

Search search_of(const std::string& schedule, const std::string& names, bool refine = false) {
  const std::string text = fmt::format(
      "schedule: {}\n"
      "parallel: {{pipeline_model_parallel_size: 4}}\n"
      "batch: {{num_microbatches: 12}}\n"
      "cost: {{kind: given, forward: 10 ms, backward_input: 11 ms, backward_weight: 9 ms}}\n",
      schedule);
  SearchOptions options;
  options.refine = refine;
  options.schedules = {names};
  return {read_scenario(YamlSource(PIPESIM_SOURCE_DIR "/schedules/descriptions/s.yaml", text)),
          options};
}

// Groups of fewer microbatches hold less and take longer: the least limit decides on g.
TEST(SearchOfDescriptions, ChoosesParametersByTheLimit) {
  const Search search = search_of("{file: gis.yaml}", "gis.yaml");
  const auto group = [&](double limit) {
    const SearchResult result = search.at(limit * search.unit());
    return std::get<long>(result.best->choice.options.at("g"));
  };
  EXPECT_EQ(group(1), 4);
  EXPECT_EQ(group(0.75), 2);
  EXPECT_EQ(search.at(0.75 * search.unit()).best->time,
            search_of("{file: gis.yaml, g: 2}", "gis.yaml").at(search.unit()).best->time);
}

TEST(SearchOfDescriptions, KeepsTheParametersThatAreSet) {
  const Search search = search_of("{file: gis.yaml, g: 1}", "gis.yaml");
  EXPECT_EQ(std::get<long>(search.at(search.unit()).best->choice.options.at("g")), 1);
}

// Larger groups hold more; by rules as by the block.
TEST(SearchOfDescriptions, ChoosesParametersOfRules) {
  const Search by_rules =
      search_of("{file: interleaved-1f1b-rules.yaml}", "interleaved-1f1b-rules.yaml");
  const Search by_block = search_of("{file: interleaved-1f1b.yaml}", "interleaved-1f1b.yaml");
  for (const double limit : {1.0, 1.5, 2.0}) {
    const auto rules = by_rules.at(limit * by_rules.unit());
    const auto block = by_block.at(limit * by_block.unit());
    ASSERT_EQ(rules.best.has_value(), block.best.has_value()) << limit;
    if (!rules.best) continue;
    EXPECT_EQ(rules.best->time, block.best->time) << limit;
    EXPECT_EQ(rules.best->choice.options, block.best->choice.options) << limit;
  }
}

// Refinement, bounds and limits where devices hold unequal numbers of stages.
TEST(SearchOfDescriptions, TakesUnequalNumbersOfStages) {
  const auto path = testing::test_folder() / "unequal.yaml";
  // Down the devices and back up, with one stage on the last.
  testing::write_file(path,
                      "placement: {device: 's if s < p else 2*p - 2 - s', stages: 2*p - 1}\n"
                      "order: {F: i // m, B: 'i // m if d == p - 1 else 1 - i // m'}\n"
                      "rules:\n  - {passes: [F]}\n  - {passes: [BW]}\n");
  const Search search = search_of("{file: " + path.string() + "}", "unequal.yaml", true);
  const SearchResult result = search.at(4 * search.unit());
  ASSERT_TRUE(result.best.has_value());
  EXPECT_FALSE(result.best->program->placement().even());
  EXPECT_GE(result.best->time, result.bound);
}

TEST(SearchOfDescriptions, FindsWhatTheBuiltInScheduleDoes) {
  const Search described = search_of("{file: v-half.yaml}", "v-half.yaml");
  const Search built_in = search_of("1f1b", "v-half");
  EXPECT_EQ(described.at(described.unit()).best->time, built_in.at(built_in.unit()).best->time);
}

}  // namespace
}  // namespace pipesim::described_test
