#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim::report_test {
namespace {

namespace fs = std::filesystem;
using testing::Command;

TEST_F(Command, ReportWritesOneFileThatNeedsNothingElse) {
  EXPECT_EQ(run("report " + quickstart_ + " -o page.html").code, 0);
  EXPECT_EQ(files(), 1U);
  const std::string page = read("page.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const char* word : {"http:", "https:", "src=", "@import", "{{"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run("report " + quickstart_ + " -o again.html").code, 0);
  EXPECT_EQ(page, read("again.html"));
}

TEST_F(Command, ReportRefusesWhatIsNoResultAndWritesNothing) {
  write("no.json", "{\n \"pipesim\": {},\n x\n}\n");
  write("other.json", "{\"pipesim\": {}}\n");
  fs::create_directories(folder_ / "empty");
  fs::create_directories(folder_ / "sweep");
  write("sweep/results.csv", "point,schedule,iteration_seconds\n0,1f1b,1\n1,1f1b\n");
  write("sweep/failed.csv", "point,schedule,reason\n");
  write("sweep/sweep.yaml", "schedule: 1f1b\n");
  fs::create_directories(folder_ / "other");
  write("other/results.csv", "a,b\n");
  write("other/failed.csv", "");
  write("other/sweep.yaml", "schedule: 1f1b\n");
  struct Slip {
    std::string arguments;
    const char* expected;
  };
  for (const Slip& slip :
       std::vector<Slip>{{"no.json", "no.json:3:2: is no JSON"},
                         {"other.json",
                          "has no 'scenario'; expected a document of 'pipesim run --json' or "
                          "'pipesim plan --json'"},
                         {"empty", "'empty' is no folder of a sweep: it has no results.csv"},
                         {"sweep", "results.csv:3:1: expected 3 cells, not 2"},
                         {"other", "is no table of a sweep"},
                         {"sweep schedule=1f1b", "only a scenario can be changed"},
                         {"sweep " + quickstart_, "a sweep is reported alone"},
                         {"missing.yaml", "missing.yaml"},
                         {"batch.num_microbatches=8", "expected a scenario"},
                         {quickstart_ + " cost.forward=3", "has no unit"}}) {
    const auto outcome = run("report " + slip.arguments + " -o page.html");
    EXPECT_EQ(outcome.code, 2) << slip.arguments;
    EXPECT_NE(outcome.output.find(slip.expected), std::string::npos) << outcome.output;
    EXPECT_FALSE(fs::exists(folder_ / "page.html"));
  }
  EXPECT_EQ(run("report " + quickstart_).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "quickstart.html"));
}

}  // namespace
}  // namespace pipesim::report_test
