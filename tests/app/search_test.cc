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

// No schedule has an order of three chunks on hanayo's placement.
TEST_F(SearchCommand, NamesAnOrderThatIsOfNoSchedule) {
  write("unlike.yaml",
        "schedule: zb\nparallel: {pipeline_model_parallel_size: 3}\n"
        "batch: {num_microbatches: 8, micro_batch_size: 1}\n"
        "cost: {kind: given, per: device, forward: [7 ms, 16 ms, 19 ms], backward_input: 7 ms,\n"
        "       backward_weight: [6 ms, 5 ms, 5 ms], transfer: 0.3 ms}\n"
        "memory: {kind: given, per: device, activation: [2 GiB, 5 GiB, 4 GiB], weight_stash: 1 GiB}"
        "\n");
  const Outcome found =
      run("search unlike.yaml --max-chunks 3 --effort 0 --memory-limit 1.5 -o best.yaml");
  ASSERT_EQ(found.code, 0) << found.output;
  EXPECT_NE(found.output.find("order on the placement of hanayo"), std::string::npos)
      << found.output;
  EXPECT_EQ(run("run best.yaml").code, 0);
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
