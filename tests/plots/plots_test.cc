// Figures as a user asks for them: each kind, each format, the same bytes again, and mistakes by
// name.
#include <gtest/gtest.h>
#include <regex>

#include "tests/app/command.h"

namespace pipesim::plots_test {
namespace {

using testing::Outcome;

// Skips where no interpreter has matplotlib.
class Figures : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    const Outcome outcome = run("plot bubble " + quickstart_ + " schedule=1f1b -o probe.png");
    if (outcome.output.find("no matplotlib") != std::string::npos) GTEST_SKIP() << outcome.output;
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }

  // The SVG that the arguments draw; its text stays text.
  [[nodiscard]] std::string svg(const std::string& arguments) const {
    const Outcome outcome = run("plot " + arguments + " -o figure.svg");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
    std::string text = read("figure.svg");
    EXPECT_TRUE(text.starts_with("<?xml")) << arguments;
    EXPECT_TRUE(text.ends_with("</svg>\n")) << arguments;
    return text;
  }
  static void expect_texts(const std::string& svg, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      EXPECT_NE(svg.find(">" + text + "</text>"), std::string::npos) << text;
    }
  }

  const std::string two_ = quickstart_ +
                           " schedule='[1f1b, zb-h2]' batch.num_microbatches=8 "
                           "parallel.pipeline_model_parallel_size=4";
  const std::string paper_ = std::string(PIPESIM_SOURCE_DIR) + "/scenarios/paper/";
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(Figures, TimelineHasABoxAndANumberForEveryPass) {
  const std::string figure = svg("timeline " + two_ + " schedule=1f1b");
  expect_texts(figure, {"device", "time (ms)", "F  forward"});
  EXPECT_NE(figure.find("1f1b: p = 4, m = 8"), std::string::npos);
  // Microbatch 7 has a forward and a backward on each of 4 devices.
  EXPECT_EQ(count(figure, ">7</text>"), 8U);
}

TEST_F(Figures, TimelineShowsBothHalvesOfAnOverlappedBlock) {
  const std::string figure =
      svg("timeline " + two_ + " schedule=dualpipe cost.overlapped='40 ms' --width 14");
  EXPECT_NE(figure.find("dualpipe: p = 4"), std::string::npos);
  expect_texts(figure, {"F  forward", "BW  both gradients"});
}

TEST_F(Figures, MemoryNamesThePeak) {
  const std::string figure = svg("memory " + two_);
  expect_texts(figure, {"1f1b", "zb-h2", "activations (GiB)", "13.8 GiB, device 0", "peak"});
}

TEST_F(Figures, BubbleStacksCausesOfSchedulesAndOfDevices) {
  expect_texts(svg("bubble " + two_), {"1f1b", "zb-h2", "warm-up", "cool-down", "28.6%"});
  expect_texts(svg("bubble " + two_ + " schedule=zb-h2"), {"zb-h2: idle time of every device"});
}

TEST_F(Figures, ParetoTakesScenariosDocumentsAndTables) {
  const std::vector<std::string> texts{"1f1b", "zb-h2", "peak activation memory (GiB)",
                                       "samples per second and GPU"};
  expect_texts(svg("pareto " + two_), texts);
  ASSERT_EQ(run("run " + two_ + " --json run.json --csv run.csv").code, 0);
  expect_texts(svg("pareto run.json"), texts);
  expect_texts(svg("pareto run.csv"), texts);
}

TEST_F(Figures, ParetoCountsAllMemoryWhereAGpuIsKnown) {
  write("all.csv",
        "point,schedule,peak_activation_bytes,peak_memory_bytes,mfu\n"
        "0,1f1b,1073741824,3221225472,0.40\n1,v-half,536870912,2684354560,0.39\n");
  expect_texts(svg("pareto all.csv"), {"1f1b", "v-half", "peak memory (GiB)"});
}

// Among many points, those of the frontier are named.
TEST_F(Figures, ParetoNamesTheFrontier) {
  std::string rows = "point,schedule,peak_activation_bytes,mfu\n";
  for (int i = 0; i < 20; ++i) {
    rows += std::to_string(i) + ",order" + std::to_string(i) + "," +
            std::to_string((i + 1) * 1073741824L) + (i == 0 ? ",0.5\n" : ",0.4\n");
  }
  write("many.csv", rows);
  const std::string figure = svg("pareto many.csv");
  EXPECT_EQ(count(figure, ">order0<"), 2U);  // the legend, and its mark
  EXPECT_EQ(count(figure, ">order7<"), 1U);
}

// The fastest does not fit: it is no part of the frontier.
TEST_F(Figures, ParetoCrossesOutWhatDoesNotFit) {
  write("results.csv",
        "point,engine,schedule,peak_activation_bytes,mfu,fits\n"
        "0,a,1f1b,1073741824,0.40,yes\n1,a,zb-2p,4294967296,0.50,no\n2,a,v-half,2147483648,0.45,"
        "tight\n"
        "3,b,1f1b,1073741824,0.40,yes\n4,b,zb-2p,4294967296,0.48,no\n5,b,v-half,2147483648,0.44,"
        "yes\n");
  expect_texts(svg("pareto results.csv --where engine=a"), {"1f1b", "zb-2p", "does not fit"});
  const Outcome moved = run("plot pareto results.csv --relative-to engine=a -o moved.svg");
  EXPECT_EQ(moved.code, 0);
  EXPECT_NE(moved.output.find("v-half"), std::string::npos) << moved.output;
  EXPECT_EQ(moved.output.find("zb-2p"), std::string::npos) << moved.output;
}

TEST_F(Figures, RefusedSchedulesAreLeftOutByName) {
  const Outcome refused = run("plot pareto " + quickstart_ +
                              " schedule='[1f1b, {name: zb, "
                              "memory_limit: 1 B}]' -o two.svg");
  EXPECT_EQ(refused.code, 1) << refused.output;
  EXPECT_TRUE(refused.output.starts_with("zb: refused: ")) << refused.output;
  expect_texts(read("two.svg"), {"1f1b"});
}

TEST_F(Figures, SensitivityDrawsTheLongestBarFirst) {
  const std::string figure = svg("sensitivity " + two_ + " schedule=1f1b");
  expect_texts(figure, {"forward", "transfer", "value x 0.5", "value x 2", "1f1b"});
  EXPECT_LT(figure.find(">speed of the busiest device</text>"), figure.find(">transfer</text>"));
}

constexpr const char* kSweep =
    "point,batch.num_microbatches,model.vocab_size,schedule,iteration_seconds,bubble_rate,mfu\n"
    "0,8,32000,1f1b,1.0,0.30,0.40\n1,8,32000,zb-h1,0.9,0.20,0.45\n"
    "2,16,32000,1f1b,1.8,0.20,0.44\n3,16,32000,zb-h1,1.7,0.12,0.48\n"
    "4,8,64000,1f1b,1.1,0.32,0.41\n5,8,64000,zb-h1,1.0,0.22,0.46\n"
    "6,16,64000,1f1b,2.0,0.22,0.45\n7,16,64000,zb-h1,1.9,0.14,0.49\n";

TEST_F(Figures, CurvesOfASweepWithPublishedPoints) {
  std::filesystem::create_directory(folder_ / "out");
  write("out/results.csv", kSweep);
  write("published.csv",
        "# from a paper\nschedule,batch.num_microbatches,bubble_rate\n1f1b,8,0.31\n1f1b,16,0.21\n");
  expect_texts(svg("curves out --x batch.num_microbatches --y bubble_rate --panel model.vocab_size "
                   "--published published.csv"),
               {"vocabulary size 32000", "vocabulary size 64000", "microbatches", "bubble rate (%)",
                "published"});
  const Outcome several = run("plot curves out --x batch.num_microbatches -o none.svg");
  EXPECT_EQ(several.code, 2);
  EXPECT_NE(several.output.find("'model.vocab_size'"), std::string::npos) << several.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.svg"));
}

TEST_F(Figures, BandsAreDrawnWhereTheyAreAskedFor) {
  write("results.csv",
        "point,batch.num_microbatches,schedule,iteration_seconds,iteration_low_seconds,"
        "iteration_high_seconds,peak_activation_bytes,mfu\n"
        "0,8,1f1b,1.0,0.9,1.2,1073741824,0.40\n1,16,1f1b,1.8,1.7,2.0,1073741824,0.44\n");
  for (const std::string kind : {"curves results.csv --y mfu", "pareto results.csv"}) {
    EXPECT_EQ(count(svg(kind), "LineCollection"), 0U) << kind;
    EXPECT_GT(count(svg(kind + " --band"), "LineCollection"), 0U) << kind;
  }
  const Outcome outcome = run("plot heatmap results.csv --band -o none.svg");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("takes no --band: pareto and curves do"), std::string::npos);
}

TEST_F(Figures, PanelsAreCalledAsTheirSettingNotAsAFile) {
  write("results.csv",
        "point,cost.anchor,schedule,peak_activation_bytes,mfu\n"
        "0,none,1f1b,1073741824,0.40\n1,measured.yaml,1f1b,1073741824,0.44\n");
  const std::string figure = svg("pareto results.csv --panel cost.anchor");
  expect_texts(figure, {"from first principles", "anchored"});
  EXPECT_EQ(figure.find("measured.yaml"), std::string::npos);
}

// One of three schedules on the frontier under a leaves it, one comes in its place, one stays.
TEST_F(Figures, ParetoSaysHowTheFrontierMoves) {
  write("results.csv",
        "point,engine,schedule,peak_activation_bytes,mfu\n"
        "0,a,1f1b,1073741824,0.40\n1,a,v-half,2147483648,0.45\n2,a,zb-2p,4294967296,0.50\n"
        "3,a,zb-1p,3221225472,0.44\n"
        "4,b,1f1b,1073741824,0.40\n5,b,v-half,2147483648,0.36\n6,b,zb-2p,4294967296,0.48\n"
        "7,b,zb-1p,3221225472,0.44\n");
  const Outcome moved = run("plot pareto results.csv --relative-to engine=a -o moved.svg");
  EXPECT_EQ(moved.code, 0);
  EXPECT_EQ(moved.output,
            "frontier: MFU (%) against peak activation memory (GiB), a -> b\n"
            "  1f1b    1: 40, stays\n"
            "  v-half  2: 45 -> 36 (-20.00%), leaves\n"
            "  zb-1p   3: 44, enters\n"
            "  zb-2p   4: 50 -> 48 (-4.00%), stays\n");
  expect_texts(read("moved.svg"), {"a", "b", "v-half"});
  const Outcome alone =
      run("plot pareto results.csv --where engine=a --relative-to engine=a -o none.svg");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.output.find("there are none: choose with --where"), std::string::npos)
      << alone.output;
}

TEST_F(Figures, HeatMapsWriteEveryValue) {
  write("results.csv", kSweep);
  const std::string figure = svg("heatmap results.csv --value mfu");
  expect_texts(figure, {"40.0", "45.0", "49.0", "1f1b", "zb-h1", "MFU (%)"});
  expect_texts(svg("heatmap results.csv --relative-to schedule=1f1b"),
               {"change of iteration time (%)", "-10.00", "-5.56"});
  ASSERT_EQ(run("validate pipeoffload --json k.json").code, 0);
  expect_texts(svg("heatmap k.json --where 'table=Figure 1'"), {"published", "1.70", "0.49"});
}

// A cell that does not fit has its number on a hatch, a refused one a cross, an unswept one a dash.
TEST_F(Figures, HeatMapsTellWhatDoesNotFitFromWhatIsMissing) {
  write("results.csv",
        "point,parallel.p,batch.m,schedule,mfu,fits\n"
        "0,2,8,zb,0.41,yes\n1,2,16,zb,0.42,no\n3,4,16,zb,0.44,yes\n");
  const std::string plain =
      svg("heatmap results.csv --value mfu --where fits=yes --x batch.m --y parallel.p");
  EXPECT_EQ(count(plain, ">–</text>"), 2U);
  EXPECT_EQ(plain.find("does not fit"), std::string::npos);
  EXPECT_EQ(plain.find("refused"), std::string::npos);
  write("failed.csv", "point,parallel.p,batch.m,schedule,reason\n2,4,8,zb,too few\n");
  const std::string figure = svg("heatmap results.csv --value mfu");
  expect_texts(figure, {"41.0", "42.0", "44.0", "×", "does not fit", "refused"});
  EXPECT_EQ(count(figure, ">×</text>"), 1U);
  EXPECT_EQ(figure.find(">–</text>"), std::string::npos);
  // One hatched cell, and the legend's.
  EXPECT_EQ(count(figure, "fill: url(#"), 2U);
  // A value of which every point was refused has a column too.
  write("failed.csv",
        "point,parallel.p,batch.m,schedule,reason\n2,4,8,zb,too few\n4,8,8,zb,too few\n");
  const std::string wider = svg("heatmap results.csv --value mfu");
  EXPECT_EQ(count(wider, ">×</text>"), 2U);
  EXPECT_EQ(count(wider, ">–</text>"), 1U);
}

// Rows of panels are labelled at their left.
TEST_F(Figures, HeatMapsHaveAPanelPerScheduleWhateverIsRecomputed) {
  std::string table = "point,recompute.granularity,batch.m,schedule,recompute,mfu\n";
  for (const std::string schedule : {"1f1b", "zb", "zb-v", "v-half"}) {
    for (const std::string m : {"8", "16"}) {
      table += "0,none," + m + "," + schedule + ",none,0.4\n";
      table += "1,full," + m + "," + schedule + ",full,0.3\n";
    }
  }
  write("results.csv", table);
  // A point that cannot be read is known by its bare name.
  write("failed.csv",
        "point,recompute.granularity,batch.m,schedule,recompute,reason\n9,fulll,8,zb,,unknown\n");
  const std::string figure =
      svg("heatmap results.csv --value mfu --x batch.m --y recompute.granularity");
  expect_texts(figure, {"1f1b", "zb", "zb-v", "v-half", "fulll"});
  EXPECT_EQ(figure.find("(recompute)"), std::string::npos);
  EXPECT_EQ(count(figure, ">granularity</text>"), 2U);
  EXPECT_EQ(count(figure, ">×</text>"), 1U);
  // Where no axis says it, marks do.
  EXPECT_NE(svg("curves results.csv --x batch.m --y mfu").find("zb (recompute)"),
            std::string::npos);
  EXPECT_EQ(svg("curves results.csv --x batch.m --y mfu --panel recompute").find("zb (recompute)"),
            std::string::npos);
  EXPECT_NE(
      svg("curves results.csv --x batch.m --y mfu --series recompute,schedule").find("full (zb)"),
      std::string::npos);
}

// A series' name says what tells two entries of a list with one name apart.
TEST_F(Figures, SchedulesOfOneNameAreToldApartByWhatWasChosen) {
  write("results.csv",
        "point,schedule,options,recompute,offload,memory_limit,peak_activation_bytes,mfu\n"
        "0,zb,,none,none,1,1073741824,0.40\n1,zb,,none,none,1.5,2147483648,0.41\n"
        "2,best,placement vee,none,none,,3221225472,0.42\n"
        "3,best,placement linear,none,full,,3221225472,0.39\n");
  expect_texts(svg("pareto results.csv"),
               {"zb (memory limit 1)", "best (placement vee)", "best (placement linear, offload)"});
}

TEST_F(Figures, HeatMapsTakeTheJsonOfASweep) {
  write("s.yaml",
        "schedule: interleaved-1f1b\n"
        "parallel: {pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: 2}\n"
        "batch: {num_microbatches: 4, micro_batch_size: 1}\n"
        "cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}\n"
        "sweep: {grid: {cost.forward: [1 ms, 9 ms], batch.num_microbatches: [3, 4, 8]}}\n");
  ASSERT_EQ(run("sweep s.yaml -o out --json out.json").code, 0);
  for (const char* input : {"out", "out.json"}) {
    const std::string figure = svg(std::string("heatmap ") + input + " --value bubble_rate");
    EXPECT_EQ(count(figure, ">×</text>"), 2U) << input;
    expect_texts(figure, {"1 ms", "9 ms", "3", "4", "8", "refused"});
  }
}

TEST_F(Figures, MemoryScalingHasAPanelPerSizeAndTheSameInATable) {
  const std::string scaling = "plot memory-scaling " + std::string(PIPESIM_SOURCE_DIR) +
                              "/scenarios/llama3-70b-h100.yaml schedule=1f1b";
  const Outcome drawn = run(scaling + " -o figure.svg");
  EXPECT_EQ(drawn.code, 0) << drawn.output;
  EXPECT_NE(drawn.output.find("left out: tensor_model_parallel_size 16"), std::string::npos);
  expect_texts(read("figure.svg"), {"data parallel", "tensor parallel", "context parallel",
                                    "pipeline parallel", "GiB a GPU", "optimizer", "peak memory"});
  ASSERT_EQ(run(scaling + " -o sizes.csv").code, 0);
  EXPECT_TRUE(
      read("sizes.csv")
          .starts_with(
              "schedule,options,recompute,offload,memory_limit,axis,size,gpus,weights_bytes"));
  EXPECT_EQ(run("plot memory-scaling sizes.csv -o again.svg").code, 0);
  EXPECT_EQ(read("again.svg"), read("figure.svg"));
}

TEST_F(Figures, EveryFormatIsItselfAndTheSameBytesAgain) {
  for (const auto& [format, begin] : {std::pair<std::string, std::string>{"pdf", "%PDF-"},
                                      {"png", "\x89PNG"},
                                      {"svg", "<?xml"}}) {
    ASSERT_EQ(run("plot timeline " + two_ + " -o a." + format).code, 0) << format;
    ASSERT_EQ(run("plot timeline " + two_ + " -o b." + format).code, 0) << format;
    const std::string first = read("a." + format);
    EXPECT_TRUE(first.starts_with(begin)) << format;
    EXPECT_GT(first.size(), 2000U) << format;
    EXPECT_EQ(first, read("b." + format)) << format;
  }
}

TEST_F(Figures, MistakesAreNamedAndNothingIsWritten) {
  write("results.csv", kSweep);
  write("broken.csv", "schedule,mfu\n1f1b,0.4\nzb-h1\n");
  write("bytes.csv", "schedule,mfu\n1f1b,\xff\n");
  write("digits.json", "[" + std::string(5000, '9') + "]");
  write("texts.json", "{\"results\": [\"1f1b\"]}");
  write("numbers.json", "[1, 2]");
  write("values.json", "{\"results\": [{\"values\": 1}]}");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"pareto results.csv --x iteration_seconds --y bubbel_rate",
            "did you mean 'bubble_rate'?"},
           {"pareto results.csv --x mfu --where schedule=2f2b", "there are 1f1b, zb-h1"},
           {"pareto broken.csv", "broken.csv:3:1: 1 cells, but 2 columns"},
           {"pareto bytes.csv", "bytes.csv:1:1: this is no UTF-8 text"},
           {"pareto digits.json", "digits.json:1:1: this is no JSON document"},
           {"pareto texts.json", "texts.json:1:1: expected a document with 'results'"},
           {"pareto numbers.json", "numbers.json:1:1: expected a document with 'results'"},
           {"pareto values.json", "values.json:1:1: expected points with 'values'"},
           {"heatmap " + quickstart_, "expected results.csv"},
           {"timeline results.csv", "results.csv:1:1: this is no JSON document"},
           {"timeline results.csv --panel mfu", "a figure of kind timeline takes no --panel"},
           {"bubble " + quickstart_ + " --where schedule=1f1b",
            "a figure of kind bubble takes no --where: pareto, curves and heatmap do"},
           {"sensitivity " + quickstart_ + " schedule=1f1b --value peak_memory_bytes",
            "pipesim: quickstart: no value 'peak_memory_bytes'; it has iteration_seconds"},
           {"pareto " + quickstart_ + " --x peak", "pipesim: quickstart: no column 'peak'"},
           {"sensitivity " + quickstart_ + " schedule=1f1b --value fits", "no value 'fits'"},
           {"pareto results.csv batch.num_microbatches=8", "changes a scenario"}}) {
    const Outcome outcome = run("plot " + arguments + " -o none.svg");
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none.svg"));
  }
  EXPECT_NE(run("plot bubble " + quickstart_ + " -o figure.jpg").output.find("ends in .pdf, .svg"),
            std::string::npos);
}

using Plot = testing::Command;

TEST_F(Plot, SaysHowToGetMatplotlibWhereNoInterpreterHasIt) {
  const Outcome outcome =
      shell("PIPESIM_PYTHON=/nowhere/python3 " + std::string(PIPESIM_EXECUTABLE) + " plot bubble " +
            quickstart_ + " -o figure.svg");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find("apt-get install python3-matplotlib"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(files(), 0U);
}

// A sweep of such a file starts from a scenario that runs.
TEST_F(Plot, ScenariosOfPapersRun) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PIPESIM_SOURCE_DIR) + "/scenarios/paper")) {
    const bool anchor = entry.path().stem().string().ends_with("_anchor");
    if (anchor || entry.path().extension() != ".yaml") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string whole = text.str();
    const size_t sweep = whole.find("\nsweep:");
    write("scenario.yaml", sweep == std::string::npos ? whole : whole.substr(0, sweep + 1));
    const Outcome outcome = run("run scenario.yaml");
    // On few devices hardly anything fits, and PipeOffload skips PO-F where copies take too long.
    const std::string name = entry.path().filename().string();
    const bool says_why = name == "memory_by_devices.yaml" || name == "pipeoffload_figure15.yaml";
    EXPECT_EQ(outcome.code, says_why ? 1 : 0) << entry.path() << '\n' << outcome.output;
  }
}

}  // namespace
}  // namespace pipesim::plots_test
