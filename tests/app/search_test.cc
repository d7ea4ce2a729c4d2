// pipesim search: what it writes is what `run` then says.
#include <gtest/gtest.h>
#include <regex>
#include <string>

#include "tests/app/command.h"

namespace pipesim::search_command_test {
namespace {

using testing::Outcome;

class SearchCommand : public testing::Command {
 protected:
  // The makespan in the file's first row.
  [[nodiscard]] std::string makespan(const std::string& csv) const {
    const std::string text = read(csv);
    std::smatch found;
    const std::regex row(R"(\n[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,([^,]*),)");
    return std::regex_search(text, found, row) ? found[1].str() : "nothing in " + text;
  }
};

TEST_F(SearchCommand, WritesWhatRunsAsItSays) {
  const std::string small = quickstart_ +
                            " parallel.pipeline_model_parallel_size=4 batch.num_microbatches=6 "
                            "--effort 1e5 --csv found.csv -o best.yaml ";
  for (const std::string given :
       {"--max-splits 4 --schedules seq-1f1b --memory-limit 1.5", "recompute=full", "--recompute",
        "offload=true cost.copy_out='4 ms' cost.copy_in='4 ms' --memory-limit 0.5",
        "offload=true cost.copy_out='4 ms' cost.copy_in='4 ms' cost.overlapped='38 ms' "
        "--schedules dualpipev --memory-limit 0.7",
        "framework.transfers=blocking", "framework.transfers=blocking --schedules 1f1b",
        "cost.per=stage"}) {
    SCOPED_TRACE(given);
    const Outcome found = run("search " + small + given);
    ASSERT_EQ(found.code, 0) << found.output;
    const Outcome again = run("run best.yaml --json out.json");
    ASSERT_EQ(again.code, 0) << again.output;
    const std::string seconds = "\"makespan_from_rest_seconds\": " + makespan("found.csv");
    EXPECT_NE(read("out.json").find(seconds), std::string::npos) << seconds;
  }
}

TEST_F(SearchCommand, SaysWhoRunsItsCsv) {
  const Outcome found = run("search " + quickstart_ +
                            " --max-splits 4 --schedules seq-1f1b --memory-limit 1.5 "
                            "--no-refinement -o best.csv");
  EXPECT_EQ(found.code, 0) << found.output;
  EXPECT_NE(found.output.find("the CSV is for pipesim alone: "), std::string::npos) << found.output;
  const Outcome calls = run("search " + quickstart_ +
                            " framework.transfers=blocking --schedules zb-h1 --no-refinement "
                            "-o calls.csv");
  EXPECT_EQ(calls.code, 1) << calls.output;
  EXPECT_NE(calls.output.find("no CSV is written: it has no calls of the schedule's own"),
            std::string::npos)
      << calls.output;
}

}  // namespace
}  // namespace pipesim::search_command_test
