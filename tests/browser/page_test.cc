// Reports opened in a real browser, from a file: no error, everything drawn, and it answers to
// pointer and keys.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/browser/browser.h"

namespace pipesim::page_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Outcome;

class Page : public testing::Browser {
 protected:
  // Findings of tests/browser/drive.js in the report of `arguments`.
  json open(const std::string& arguments) {
    const Outcome made = run("report " + arguments + " -o page.html");
    EXPECT_EQ(made.code, 0) << made.output;
    return open_page();
  }
  // And in page.html.
  json open_page() { return drive("page.html", {"drive_plan.js", "drive.js"}); }

  static void expect_layout(const json& found) {
    EXPECT_LE(found.at("wider"), 0);
    EXPECT_LE(found.at("tableWider"), 0);
    EXPECT_EQ(found.at("alone"), false);
    EXPECT_NE(found.at("answer"), "");
    EXPECT_TRUE(found.at("saved").get<std::string>().ends_with(".svg blob:"));
  }
  static void expect_timeline(const json& found) {
    EXPECT_GE(found.at("timelineColours"), 8);
    EXPECT_GE(found.at("memoryColours"), 5);
    EXPECT_GE(found.at("bubbleColours"), 4);
    EXPECT_GT(found.at("critical"), 0);
    EXPECT_GE(found.at("cards"), 4);
    EXPECT_LT(found.at("zoomed"), 0.1);
    EXPECT_GE(found.at("zoomedColours"), 4);
    EXPECT_GT(found.at("moved"), 0);
    EXPECT_EQ(found.at("fitted"), 1);
    const std::string walked = found.at("walked");
    for (const char* word : {"microbatch", "stage", "device 1", "start", "end", "duration"}) {
      EXPECT_NE(walked.find(word), std::string::npos) << walked;
    }
  }
  static void expect_table(const json& found) {
    expect_layout(found);
    EXPECT_EQ(found.at("first"), found.at("least"));
    EXPECT_GE(found.at("filtered"), 1);
    EXPECT_EQ(found.at("none"), 0);
    EXPECT_EQ(found.at("refused"), "no column like 'nosuch'");
  }
  // Columns are found by the names that the table has.
  static void expect_filter(const json& found) {
    EXPECT_EQ(found.at("byLabel"), true);
    EXPECT_GE(found.at("wordsAndLabel"), 1);
    const std::string unclear = found.at("unclear");
    EXPECT_NE(unclear.find("'bubble' may be bubble rate, "), std::string::npos) << unclear;
  }
};

TEST_F(Page, OneResultOpens) {
  const json found = open(quickstart_ + " schedule=1f1b");
  expect_timeline(found);
  expect_table(found);
  expect_filter(found);
  EXPECT_EQ(found.at("passes"), 8 * 24 * 2);
  EXPECT_EQ(found.at("rows"), 1);
  EXPECT_EQ(found.at("paretoColours"), 0);  // one point makes no chart
  EXPECT_NE(found.at("scenario").get<std::string>().find("schedule=1f1b"), std::string::npos);
}

TEST_F(Page, AComparisonOpensTheScenarioOfAPoint) {
  const json found = open(quickstart_);
  expect_timeline(found);
  expect_table(found);
  EXPECT_EQ(found.at("rows"), 5);
  EXPECT_GE(found.at("paretoColours"), 8);
  EXPECT_NE(found.at("opened"), found.at("openedOn"));
  EXPECT_NE(found.at("paretoHover"), "");
  EXPECT_NE(found.at("detail").get<std::string>().find("pipesim run "), std::string::npos);
}

TEST_F(Page, MessagesCollectivesAndTheOptimizersStepAreDrawn) {
  const json found = open(std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml");
  EXPECT_EQ(found.at("beside").at("kinds"), json({"collective", "message"}));
  const std::string says = found.at("beside").at("says");
  EXPECT_TRUE(says.starts_with("message to device 1: activations of microbatch 0, stage ")) << says;
  EXPECT_NE(found.at("title").get<std::string>().find("llama3-70b on 256 "), std::string::npos);
  EXPECT_TRUE(found.at("answer").get<std::string>().starts_with("Best of 5 results: "));
  EXPECT_EQ(found.at("charts"), json({"pareto", "timeline", "memory", "bubble"}));
}

TEST_F(Page, TwoOrdersOpenOnThePageOfAReport) {
  EXPECT_EQ(
      run("compare " + quickstart_ + " 1f1b zb-h1 batch.micro_batch_size=6 --html page.html").code,
      0);
  const json found = open_page();
  expect_timeline(found);
  expect_table(found);
  EXPECT_EQ(found.at("title"), "1f1b and zb-h1: 8 devices, 24 microbatches");
  EXPECT_TRUE(found.at("answer").get<std::string>().starts_with("B takes "));
  const json& orders = found.at("orders");
  for (const json& colours : orders.at("colours")) EXPECT_GE(colours, 5);
  EXPECT_EQ(orders.at("tables"), json({10, 9, 11}));
  EXPECT_EQ(orders.at("legend").back(), "frame: first pass in another order");
  EXPECT_GE(orders.at("legend").size(), 4);
  EXPECT_NE(found.at("about").get<std::string>().find("changed: batch.micro_batch_size=6"),
            std::string::npos);
}

TEST_F(Page, ADocumentOfResultsOpensWithoutATimeline) {
  EXPECT_EQ(run("run " + quickstart_ + " --json r.json").code, 0);
  const json found = open("r.json");
  expect_table(found);
  EXPECT_EQ(found.at("passes"), 0);
  EXPECT_GE(found.at("bubbleColours"), 4);
}

class PlanPage : public Page {
 protected:
  const std::string plan_ =
      "plan --model zb-1.5b --cluster dgx-a100,dgx-h100 --gpus 8 --global-batch-size 32 "
      "--seq-length 1024 --tensor 1 --micro-batch-size 2 --schedules 1f1b,zb-h1 --no-offload "
      "--tokens 1T --price-per-gpu-hour 1.5,3 --runs-on any --best 4 ";

  static void expect_plan(const json& found) {
    expect_table(found);
    EXPECT_EQ(found.at("rows"), 10);  // of two clusters, a baseline each
    EXPECT_GE(found.at("paretoColours"), 8);
    EXPECT_GE(found.at("timelineColours"), 8);
    EXPECT_LT(found.at("farthest"), 1e-12);
    EXPECT_LT(found.at("remainder"), 1e-12);
    EXPECT_NE(found.at("difference").get<std::string>().find("dgx-a100 2: "), std::string::npos);
    EXPECT_EQ(found.at("differenceLines"), 4 + 13 + 1);
    EXPECT_GE(found.at("differenceColours"), 5);
    EXPECT_TRUE(found.at("differenceHover").get<std::string>().starts_with("compute "));
    EXPECT_GT(found.at("bands"), 1.05);
    // Memory and two bandwidths three times, GPUs half and twice, and as it is: of two clusters.
    const json& what_if = found.at("whatIf");
    EXPECT_EQ(what_if.at("steps"), 2 * (3 * 4 + 3));
    EXPECT_EQ(what_if.at("wrong"), json::array());
    EXPECT_EQ(what_if.at("unfit"),
              json({"memory of a GPU \u00d7 0.02", "memory of a GPU \u00d7 0.02"}));
    EXPECT_EQ(what_if.at("reset"), true);
    EXPECT_EQ(found.at("baselineNames"), json({"published recipe", "usual.yaml", "baseline"}));
    const json& baseline = found.at("baseline");
    EXPECT_GE(baseline.at("timeline"), 8);
    EXPECT_GE(baseline.at("bubble"), 3);
    EXPECT_EQ(baseline.at("compared"), true);
    EXPECT_NE(baseline.at("cards").get<std::string>().find("80% band"), std::string::npos);
    const std::string texts = baseline.at("texts");
    for (const char* word : {"Configuration for megatron", "--pipeline-model-parallel-size",
                             "schedule: {name: 1f1b}"}) {
      EXPECT_NE(texts.find(word), std::string::npos) << texts;
    }
  }
};

TEST_F(PlanPage, OpensWithDifferencesAsTheDocumentHasThem) {
  const Outcome made =
      run(plan_ + "--what-if --what-if-factors 2,0.5,0.02 --html page.html --json plan.json");
  EXPECT_EQ(made.code, 0) << made.output;
  const json found = open_page();
  expect_plan(found);
  EXPECT_NE(found.at("baseline").at("detail").get<std::string>().find("pipesim plan --model"),
            std::string::npos);
  const json again = open("plan.json");
  expect_plan(again);
  EXPECT_EQ(again.at("baseline").at("detail").get<std::string>().find("pipesim plan --model"),
            std::string::npos);
}

// The best of each cell, hatched cells where none fits, the way there by keys and pointer, and what
// each axis explains: the throughput of a point follows from the microbatches and 13 delays.
void expect_heat(const json& heat) {
  EXPECT_GE(heat.at("colours"), 20);
  EXPECT_EQ(heat.at("axes"), json({"batch.num_microbatches", "cost.forward", "schedule"}));
  EXPECT_EQ(heat.at("cellsWrong"), 0);
  EXPECT_EQ(heat.at("unfitSaid"), true);
  EXPECT_EQ(heat.at("bestIsOpenedOn"), true);
  EXPECT_EQ(heat.at("walked"), heat.at("walkedTo"));
  EXPECT_EQ(heat.at("clicked"), heat.at("clickedOn"));
  EXPECT_NE(heat.at("says").get<std::string>().find("the best of "), std::string::npos);
  EXPECT_EQ(heat.at("swapped"), true);
  ASSERT_EQ(heat.at("shares").size(), 3U);
  EXPECT_GT(heat.at("shares")[0], 0.5);
  EXPECT_EQ(heat.at("lines"), 3);
  EXPECT_GT(heat.at("shareOfOne"), 0.999);
}

TEST_F(Page, FiveThousandResultsOpen) {
  fs::create_directories(folder_ / "sweep");
  std::string csv =
      "point,batch.num_microbatches,cost.forward,schedule,iteration_seconds,bubble_rate,"
      "samples_per_second_per_gpu,peak_activation_bytes,peak_memory_bytes,fits,capacity_"
      "bytes\n";
  int best = -1;
  double most = 0;
  for (int point = 0; point < 5000; ++point) {
    const int m = 8 + point % 100;
    const double seconds = 0.01 * (m + 7 + point % 13);
    const bool fits = m < 90;
    if (fits && m / seconds > most) {
      best = point;
      most = m / seconds;
    }
    csv += fmt::format("{},{},{} ms,{},{},{},{},{},{},{},80e9\n", point, m, 1 + point / 1000 * 0.5,
                       std::array{"1f1b", "zb-h1", "zb-v"}.at(static_cast<size_t>(point) % 3),
                       seconds, 7.0 / (m + 7), m / seconds, 1e9 * (1 + point % 17), 81e9 * m / 90,
                       fits ? "yes" : "no");
  }
  write("sweep/results.csv", csv);
  write("sweep/failed.csv",
        "point,batch.num_microbatches,cost.forward,schedule,reason\n5000,3,1 ms,zb-v,\"says "
        "\"\"no\"\", "
        "and why\"\n");
  write(
      "sweep/sweep.yaml",
      "# the base\nschedule: [1f1b, zb-h1, {name: zb-v, memory_limit: 1.5}]\nsweep:\n  grid:\n    "
      "batch.num_microbatches: [8, 9]\n# costs\ncost: {kind: given, forward: 1 ms}\n");
  const json found = open("sweep");
  expect_table(found);
  EXPECT_EQ(found.at("rows"), 5000);
  EXPECT_EQ(found.at("openedOn"), best);  // of those that fit
  EXPECT_LT(found.at("lines"), 60);       // only those in sight
  EXPECT_GE(found.at("paretoColours"), 8);
  EXPECT_GE(found.at("frontier"), 1);
  EXPECT_EQ(found.at("limits"), json({"74.51 GiB"}));
  expect_heat(found.at("heat"));
  const std::string scenario = found.at("scenario");
  EXPECT_EQ(scenario.find("grid"), std::string::npos) << scenario;
  EXPECT_NE(scenario.find("# costs"), std::string::npos) << scenario;
  const std::string detail = found.at("detail");
  EXPECT_NE(detail.find("batch.num_microbatches="), std::string::npos) << detail;
  EXPECT_NE(found.at("about").get<std::string>().find("costs given"), std::string::npos);
}

TEST_F(Page, FiftyThousandPassesOpen) {
  const json found = open(quickstart_ +
                          " schedule=zb-h1 parallel.pipeline_model_parallel_size=16 "
                          "batch.num_microbatches=1042");
  expect_timeline(found);
  EXPECT_EQ(found.at("passes"), 16 * 1042 * 3);
}

TEST_F(Page, ManyDevicesOverlappedBlocksAndAllMemoryOpen) {
  expect_timeline(open(quickstart_ + " schedule=dualpipe parallel.pipeline_model_parallel_size=128 "
                                     "batch.num_microbatches=256 'cost.overlapped=46 ms'"));
  expect_timeline(open(std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml"));
}

TEST_F(Page, TextFromOutsideStaysText) {
  EXPECT_EQ(run("export " + quickstart_ + " schedule=zb-h1 -o x.csv").code, 0);
  fs::create_directories(folder_ / "<");
  const std::string name = "script><img src=x onerror=faults.push(1)>&amp;\"'.csv";
  fs::rename(folder_ / "x.csv", folder_ / "<" / name);
  write("s.yaml",
        "# </script><!-- <script> \xEF\xBF\xBD\nschedule:\n  csv: '</script><img src=x "
        "onerror=faults.push(1)>&amp;\"''.csv'\nparallel: {pipeline_model_parallel_size: 8}\n"
        "batch: {num_microbatches: 24}\ncost: {kind: given, forward: 1 ms, backward_input: 1 ms, "
        "backward_weight: 1 ms}\n");
  const json found = open("s.yaml");
  EXPECT_EQ(found.at("images"), 0);
  EXPECT_EQ(found.at("rows"), 1);
  EXPECT_NE(found.at("scenario").get<std::string>().find("# </script><!-- <script> \xEF\xBF\xBD"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim::page_test
