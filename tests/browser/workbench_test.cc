// A workbench opened in a real browser: what is dragged, typed and undone there, and that what it
// saves runs as it said.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/browser/browser.h"

namespace pipesim::workbench_test {
namespace {

using nlohmann::json;

class WorkbenchPage : public testing::Browser {
 protected:
  json open(const std::string& arguments, int width = 1300, const std::string& hash = "") {
    const testing::Outcome made = run("workbench " + arguments + " -o page.html");
    EXPECT_EQ(made.code, 0) << made.output;
    return drive("page.html", {"drive_workbench.js"}, width, hash);
  }

  // The first result of `pipesim run`.
  json simulated(const std::string& arguments) {
    const testing::Outcome ran = run("run " + arguments + " --json r.json");
    EXPECT_EQ(ran.code, 0) << ran.output;
    return json::parse(read("r.json")).at("results").at(0);
  }
  // Simulates an order as the page has saved it.
  json simulated(const json& saved, const std::string& arguments) {
    write("saved.csv", saved.at("csv"));
    return simulated(arguments + " 'schedule={csv: saved.csv}'");
  }

  const std::string small_ =
      quickstart_ + " parallel.pipeline_model_parallel_size=4 batch.num_microbatches=8";
};

TEST_F(WorkbenchPage, FollowsEveryChangeAndUndoesIt) {
  const json found = open(small_ + " 'schedule=[zb-h1, 1f1b]'", 1300, "#use");
  for (const auto& colours : found.at("colours")) EXPECT_GE(colours, 8);
  EXPECT_EQ(found.at("makespans").at(0),
            simulated(small_ + " schedule=zb-h1").at("makespan_seconds"));

  // By pointer, finger and keys.
  for (const char* what : {"seen", "moved", "changed", "follows", "touched", "undone",
                           "undoneTwice", "redone", "keyFollows", "buttonMovedBack"}) {
    EXPECT_EQ(found.at(what), true) << what;
  }
  EXPECT_NE(found.at("movedSays").get<std::string>().find("makespan"), std::string::npos);
  const json saved = simulated(found.at("saved"), small_);
  EXPECT_EQ(saved.at("makespan_seconds"), found.at("saved").at("makespan"));
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(saved.at("devices").at(device).at("peak_activation_bytes"),
              found.at("saved").at("peaks").at(device));
  }
  EXPECT_NE(found.at("walked").get<std::string>().find("device 1"), std::string::npos);
  EXPECT_EQ(found.at("atTheEnd"), "Not possible: 1W7 is the last pass of device 1");
  EXPECT_LT(found.at("zoomed"), 0.6);
  EXPECT_EQ(found.at("fitted"), 1);

  // An order that cannot run is not kept, and its message names the passes that wait for each
  // other.
  EXPECT_EQ(found.at("marked"), json{"3B0"});
  EXPECT_EQ(found.at("refused"),
            "Not possible: 3B0 before 3F0: 3B0 needs 3F0, which stands behind 3B0");
  EXPECT_EQ(found.at("refusedIsMarked"), true);
  EXPECT_EQ(found.at("kept"), true);
  EXPECT_EQ(found.at("escaped"), 0);
  EXPECT_EQ(found.at("nothingTaken"),
            "Not possible: take a pass first: tap it, or walk to it with the arrows");
}

TEST_F(WorkbenchPage, FollowsDurationsMicrobatchesLimitsAndPlaces) {
  const json found = open(small_ + " 'schedule=[zb-h1, 1f1b]'", 1300, "#use");
  EXPECT_EQ(found.at("forward"), (json{0.0305, 0.0305, 0.0305, 0.0305}));
  EXPECT_EQ(found.at("slower"), true);
  EXPECT_EQ(found.at("steps"), 1);
  EXPECT_EQ(found.at("slowerMakespan"),
            simulated(small_ + " schedule=zb-h1 'cost.forward=30.5 ms'").at("makespan_seconds"));
  EXPECT_EQ(found.at("ofOneStage"), (json{0.009337, 0.009337, 0.001, 0.009337}));
  EXPECT_EQ(found.at("badSeconds"),
            "Not possible: a duration is a number of milliseconds, 0 or more");
  EXPECT_EQ(found.at("secondsUndone"), true);

  EXPECT_EQ(found.at("passes"), (json{36, 36, 36, 36}));
  EXPECT_EQ(found.at("ofTwelve").at("makespan"),
            simulated(small_ + " schedule=zb-h1 batch.num_microbatches=12").at("makespan_seconds"));
  EXPECT_EQ(
      simulated(found.at("ofTwelve"), small_ + " batch.num_microbatches=12").at("makespan_seconds"),
      found.at("ofTwelve").at("makespan"));
  EXPECT_NE(found.at("badM").get<std::string>().find("m = 999: the page has no order for it"),
            std::string::npos);
  EXPECT_EQ(found.at("over"), (json{0, 1, 2, 3}));
  EXPECT_NE(
      found.at("overSays").at(0).get<std::string>().find("over the limit: devices 0, 1, 2, 3"),
      std::string::npos);
  EXPECT_EQ(found.at("overSays").at(1), true);
  EXPECT_EQ(found.at("notOver"), json::array());

  // A stage changes places with one of the other device, and takes its passes along.
  EXPECT_EQ(found.at("deviceOf"), (json{0, 2, 1, 3})) << found.at("swapSays");
  EXPECT_EQ(found.at("swapFollows"), true);
  EXPECT_EQ(simulated(found.at("swapped"), small_).at("makespan_seconds"),
            found.at("swapped").at("makespan"));

  EXPECT_EQ(found.at("heads"), (json{"", "A: zb-h1", "as planned", "change", "B: 1f1b",
                                     "as planned", "change", "B against A"}));
  EXPECT_EQ(found.at("headsOfOne"), (json{"", "A: zb-h1", "as planned", "change"}));
  EXPECT_EQ(found.at("sameTwice"), true);
  EXPECT_EQ(found.at("csvShown"), true);
}

TEST_F(WorkbenchPage, JoinsPassesIntoBlocksAndTakesThemApart) {
  const std::string arguments = small_ + " 'cost.overlapped=40 ms'";
  const json found = open(arguments + " schedule=1f1b", 1300, "#pairs");
  EXPECT_EQ(found.at("noBlock"),
            "Not possible: a block is an F beside a BW, B or W of another microbatch, not 0F2 and "
            "0F3");
  EXPECT_EQ(found.at("joined"), "0F3&0BW0");
  for (const char* what : {"joinedFollows", "fieldShown", "apart", "blockUndone"}) {
    EXPECT_EQ(found.at(what), true) << what;
  }
  EXPECT_EQ(found.at("joinedSays").get<std::string>().find("0F3&0BW0 as one block: makespan"), 0U);
  const json saved = simulated(found.at("withBlock"), arguments);
  EXPECT_EQ(saved.at("makespan_seconds"), found.at("withBlock").at("makespan"));
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(saved.at("devices").at(device).at("peak_activation_bytes"),
              found.at("withBlock").at("peaks").at(device));
  }
  EXPECT_EQ(found.at("lastPass"), "Not possible: 0BW7 is the last pass of device 0");

  const json unknown = open(small_ + " schedule=1f1b", 1300, "#pairs");
  EXPECT_EQ(unknown.at("joinedSays"),
            "Not possible: the scenario does not say how long a block takes (cost.overlapped)");
}

TEST_F(WorkbenchPage, OpensSchedulesOfAllSortsAndNarrowly) {
  const json wide = open(quickstart_ + " 'schedule=[dualpipe, seq-1f1b]' 'cost.overlapped=46 ms'");
  EXPECT_EQ(wide.at("unsaved"), (json{true, true}));
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = wide.at("labels").at(i);
    EXPECT_EQ(wide.at("makespans").at(i),
              simulated(quickstart_ + " schedule=" + name + " 'cost.overlapped=46 ms'")
                  .at("makespan_seconds"));
  }
  const std::string unequal = small_ + " 'batch.factors=[1, 2, 0.5, 1.5, 3, 0.7, 1, 2]'";
  const json different = open(unequal + " schedule=zb-h1");
  EXPECT_EQ(different.at("makespans").at(0),
            simulated(unequal + " schedule=zb-h1").at("makespan_seconds"));
  const json modelled =
      open(std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml", 500);
  EXPECT_EQ(modelled.at("makespans").at(0),
            simulated(std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml")
                .at("makespan_seconds"));
  EXPECT_LE(modelled.at("wide").at(0), modelled.at("wide").at(1));
}

TEST_F(WorkbenchPage, MovesPassesWithTheirCopiesToTheHost) {
  const std::string arguments = small_ + " 'cost.copy_out=12 ms' 'cost.copy_in=12 ms'";
  const std::string schedule = " 'schedule={name: 1f1b, offload: {}}'";
  const json found = open(arguments + schedule, 1300, "#copies");
  EXPECT_EQ(found.at("makespans").at(0), simulated(arguments + schedule).at("makespan_seconds"));
  EXPECT_EQ(found.at("first"), "0BW7");
  EXPECT_EQ(found.at("copyMoved"), true);
  EXPECT_EQ(found.at("copyRefused"),
            "Not possible: 0BW7 before 0BW5: 0BW7 needs the copy back of 0F7, which waits for "
            "0BW5");
  EXPECT_EQ(found.at("faulty"), json{"0BW7"});
  EXPECT_EQ(found.at("beside"), (json{"copy in", "copy out"}));
  const json saved = simulated(found.at("moved"), arguments);
  EXPECT_EQ(saved.at("makespan_seconds"), found.at("moved").at("makespan"));
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(saved.at("devices").at(device).at("peak_activation_bytes"),
              found.at("moved").at("peaks").at(device));
  }
  EXPECT_GT(found.at("slowCopies"), found.at("makespans").at(0));

  const json published = open(arguments + " schedule=po-h");
  EXPECT_EQ(published.at("makespans").at(0),
            simulated(arguments + " schedule=po-h").at("makespan_seconds"));
  EXPECT_EQ(published.at("unsaved"), json{true});  // two devices share a link
}

TEST_F(WorkbenchPage, PlaysASharedVocabulary) {
  for (const char* placement : {"vocab-1", "vocab-2", "interlaced"}) {
    const std::string arguments =
        std::string(PIPESIM_SOURCE_DIR) +
        "/scenarios/paper/vocabulary_orders.yaml vocabulary.placement=" + placement;
    const json found = open(arguments);
    EXPECT_EQ(found.at("makespans").at(0), simulated(arguments).at("makespan_seconds"));
    EXPECT_EQ(simulated({{"csv", found.at("planned").at(0)}}, arguments).at("makespan_seconds"),
              found.at("makespans").at(0));
  }
}

TEST_F(WorkbenchPage, PlaysStragglersAndSlowLinksAndSaysThatItLeavesOutJitter) {
  const std::string slow = small_ +
                           " pipelines=2 'perturb.stragglers=[{rank: 3, factor: 1.3}]'"
                           " 'perturb.links=[{from: 5, to: 3, factor: 9}]'";
  const json found = open(slow + " 'schedule=[zb-h1, 1f1b]' perturb.jitter=0.02");
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = found.at("labels").at(i);
    EXPECT_EQ(found.at("makespans").at(i),
              simulated(slow + " schedule=" + name).at("makespan_seconds"));
    EXPECT_EQ(
        found.at("notes").at(i),
        "Shown with the passes of device 1 taking 1.3 times their seconds "
        "(perturb.stragglers). Shown without perturb.jitter 0.02, passes at their undisturbed "
        "seconds. Shown for pipeline 1 of 2, which takes longest.");
  }
}

TEST_F(WorkbenchPage, RefusesThreeKindsAlone) {
  const auto refusal = [this](const std::string& arguments) {
    const testing::Outcome refused = run("workbench " + quickstart_ + arguments + " -o page.html");
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(files(), 0U);
    return refused.output.substr(refused.output.find("play it: ") + 9);
  };
  EXPECT_EQ(refusal(" schedule=1f1b framework.transfers=blocking"),
            "its seconds depend on what else is in flight (framework.transfers: blocking)\n");
  EXPECT_EQ(refusal(" schedule=1f1b engine=simgrid"),
            "its seconds depend on what else is in flight (engine: simgrid)\n");
  EXPECT_EQ(refusal(" schedule=pipedream"), "its iterations run into each other\n");
  EXPECT_EQ(refusal(" schedule=1f1b batch.num_microbatches=4000"),
            "it has 64000 passes, more than the 40000 that a page holds\n");
}

}  // namespace
}  // namespace pipesim::workbench_test
