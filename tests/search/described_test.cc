// Search over the free parameters of described schedules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/search/search.h"

namespace pipesim {
namespace {

Search search_of(const std::string& schedule, const std::string& names) {
  const std::string text = fmt::format(
      "schedule: {}\n"
      "parallel: {{pipeline_model_parallel_size: 4}}\n"
      "batch: {{num_microbatches: 12}}\n"
      "cost: {{kind: given, forward: 10 ms, backward_input: 11 ms, backward_weight: 9 ms}}\n",
      schedule);
  SearchOptions options;
  options.refine = false;
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

TEST(SearchOfDescriptions, FindsWhatTheBuiltInScheduleDoes) {
  const Search described = search_of("{file: v-half.yaml}", "v-half.yaml");
  const Search built_in = search_of("1f1b", "v-half");
  EXPECT_EQ(described.at(described.unit()).best->time, built_in.at(built_in.unit()).best->time);
}

}  // namespace
}  // namespace pipesim
