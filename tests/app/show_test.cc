// Looking at schedules, and handing them on: show, gallery, export.
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/planning/schedule.h"
#include "tests/app/command.h"

namespace pipesim::show_test {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;

class Show : public testing::Command {};
class Gallery : public testing::Command {};
class Export : public testing::Command {};

bool has_escapes(const std::string& text) { return text.find("\033[") != std::string::npos; }

TEST_F(Show, ColoursTheTerminalOnlyUnlessToldOtherwise) {
  const std::string show = "show " + quickstart_ + " schedule=zb-h1";
  EXPECT_FALSE(has_escapes(run(show).output));  // a pipe
  EXPECT_TRUE(has_escapes(run(show + " --color always").output));
  EXPECT_FALSE(has_escapes(run(show + " --color never").output));
  EXPECT_EQ(run(show + " --color sometimes").code, 2);
  EXPECT_TRUE(
      has_escapes(run("run " + quickstart_ + " schedule=1f1b --picture --color always").output));
  // script(1) gives the command a terminal.
  const auto on_terminal = [&](const std::string& environment) {
    return shell("unset NO_COLOR; export " + environment + "; script -qec \"" +
                 std::string(PIPESIM_EXECUTABLE) + " " + show + "\" /dev/null");
  };
  EXPECT_TRUE(has_escapes(on_terminal("TERM=xterm").output));
  EXPECT_FALSE(has_escapes(on_terminal("TERM=xterm NO_COLOR=1").output));
  EXPECT_TRUE(has_escapes(on_terminal("TERM=xterm NO_COLOR=").output));
  EXPECT_FALSE(has_escapes(on_terminal("TERM=dumb").output));
}

TEST_F(Show, ColouredAndPlainPicturesHaveTheSameLetters) {
  const std::string show = "show " + quickstart_ + " 'schedule=[zb-h1, interleaved-1f1b]'";
  const std::string plain = run(show).output;
  const std::string coloured = run(show + " --color always").output;
  std::string letters;
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\033') {
      i = coloured.find('m', i);
    } else {
      letters += coloured[i];
    }
  }
  EXPECT_EQ(letters, plain);
}

TEST_F(Show, WritesAnSvgForEachScheduleNamedAsTracesAre) {
  EXPECT_EQ(run("show " + quickstart_ + " schedule=zb-h1 --format svg -o one.svg").code, 0);
  EXPECT_TRUE(read("one.svg").starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  EXPECT_TRUE(read("one.svg").ends_with("</svg>\n"));
  EXPECT_EQ(
      run("show " + quickstart_ + " 'schedule=[1f1b, zb-h1, 1f1b]' --format svg -o out.svg").code,
      0);
  EXPECT_EQ(read("out.zb-h1.svg"), read("one.svg"));
  EXPECT_EQ(read("out.1f1b.svg"), read("out.1f1b-2.svg"));
  EXPECT_EQ(files(), 4U);
}

TEST_F(Show, OneSvgGoesToStandardOutputSeveralDoNot) {
  const Outcome one = run("show " + quickstart_ + " schedule=zb-h1 --format svg");
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(one.output.starts_with("<svg "));
  const Outcome several = run("show " + quickstart_ + " --format svg");
  EXPECT_EQ(several.code, 2);
  EXPECT_NE(several.output.find("name a file with -o"), std::string::npos) << several.output;
}

TEST_F(Show, WritesPicturesAndListsToAFileToo) {
  const std::string show = "show " + quickstart_ + " schedule=zb-h1";
  const Outcome printed = run(show + " --format text");
  EXPECT_EQ(run(show + " --format text -o list.txt").code, 0);
  EXPECT_EQ(read("list.txt"), printed.output);
}

TEST_F(Show, BreaksCostsDownInPlaceOfThePicture) {
  const Outcome given = run("show " + quickstart_ + " schedule=zb-h1 --costs -o costs.txt");
  EXPECT_EQ(given.code, 0) << given.output;
  EXPECT_TRUE(read("costs.txt").starts_with("stage  device")) << read("costs.txt");
  const std::string modelled =
      std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml schedule=1f1b";
  const Outcome costs = run("show " + modelled + " --costs");
  EXPECT_EQ(costs.code, 0) << costs.output;
  EXPECT_TRUE(costs.output.starts_with("model llama3-70b")) << costs.output;
  EXPECT_EQ(run("show " + modelled + " --costs").output, costs.output);
  EXPECT_EQ(run("show " + modelled + " --costs --format svg").code, 2);
}

// That what docs have is what the command makes is for tests/app/pages_test.cc.
TEST_F(Gallery, ShowsEveryRegisteredSchedule) {
  ASSERT_EQ(run("gallery -o page").code, 0);
  const std::string page = read("page/gallery.md");
  for (const Schedule* schedule : schedules()) {
    const std::string title = title_of(*schedule);
    EXPECT_NE(page.find("\n## " + title + "\n"), std::string::npos) << title;
    EXPECT_NE(page.find("](gallery/" + title + ".svg)\n\np = "), std::string::npos) << title;
    EXPECT_TRUE(read("page/gallery/" + title + ".svg").starts_with("<svg ")) << title;
  }
}

TEST_F(Gallery, IsTheSameTwiceAndNeedsAFolder) {
  ASSERT_EQ(run("gallery -o a").code, 0);
  ASSERT_EQ(run("gallery -o b").code, 0);
  EXPECT_EQ(shell("diff -r a b").code, 0);
  write("plain", "");
  EXPECT_EQ(run("gallery -o plain").code, 2);
  EXPECT_EQ(run("gallery").code, 2);
}

TEST_F(Export, PrintsTheFlagsOfMegatron) {
  const Outcome flags = run("export " + quickstart_ + " schedule=1f1b --format megatron");
  EXPECT_EQ(flags.code, 0);
  EXPECT_NE(flags.output.find("\n--pipeline-model-parallel-size 8\n"), std::string::npos);
  EXPECT_NE(flags.output.find("\n--global-batch-size 144\n"), std::string::npos);
  EXPECT_EQ(run("export " + quickstart_ + " schedule=1f1b --format megatron -o f.txt").code, 0);
  EXPECT_EQ(read("f.txt"), flags.output);
}

TEST_F(Export, SaysWhatItsRowsDoNot) {
  const std::string of_two = "export " + quickstart_ + " schedule=1f1b batch.num_microbatches=2 ";
  ASSERT_EQ(run(of_two + "batch.factors=[1,2] batch.order=[1,0] --format csv -o o.csv").code, 0);
  EXPECT_TRUE(read("o.csv").starts_with("# of batch.order=[1,0]\n")) << read("o.csv");
  ASSERT_EQ(run(of_two + "cost.copy_in='1 ms' cost.copy_out='1 ms' offload='{ratio: 0.5, "
                         "devices_per_link: 1}' --format csv -o r.csv")
                .code,
            0);
  EXPECT_TRUE(read("r.csv").starts_with("# beside `csv` in a scenario: `offload: {ratio: 0.5}`\n"))
      << read("r.csv");
}

TEST_F(Export, SaysHowLongUnequalSlicesAre) {
  const std::string slices = "splits: [4, 3, 2]}'";
  const std::string of_slices = quickstart_ + " 'schedule={name: seq-1f1b, " + slices;
  ASSERT_EQ(run("export " + of_slices + " --format csv -o s.csv").code, 0);
  EXPECT_TRUE(read("s.csv").starts_with("# beside `csv` in a scenario: `splits: [4, 3, 2]`\n"));
  const auto iteration = [this](const std::string& scenario) {
    const Outcome ran = run("run " + scenario + " --csv r.csv");
    EXPECT_EQ(ran.code, 0) << ran.output;
    const std::string rows = read("r.csv");
    return rows.substr(rows.find(',', rows.find('\n')));
  };
  EXPECT_EQ(iteration(of_slices), iteration(quickstart_ + " 'schedule={csv: s.csv, " + slices));
  const Outcome two = run("run " + quickstart_ + " 'schedule={csv: s.csv, splits: [4, 3]}'");
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.output.find("expected a list of 3 lengths"), std::string::npos) << two.output;
}

TEST_F(Export, NamesTheNearestWithFlagsOfWhatIsReadFromFiles) {
  const auto refusal = [this](const std::string& schedule) {
    const Outcome flags =
        run("export " + quickstart_ + " 'schedule=" + schedule + "' --format megatron");
    EXPECT_EQ(flags.code, 1) << flags.output;
    return flags.output;
  };
  for (const auto& [schedule, nearest] :
       {std::pair("1f1b", "1f1b"), std::pair("zb-h1", "zb"), std::pair("v-half", "zb-v"),
        std::pair("1f1b-v", "1f1b-v"), std::pair("gis", "gis"), std::pair("chimera", "1f1b-v"),
        std::pair("{name: seq-1f1b, splits: 2}", "seq-1f1b")}) {
    ASSERT_EQ(
        run("export " + quickstart_ + " 'schedule=" + schedule + "' --format csv -o s.csv").code,
        0);
    const std::string output = refusal("{csv: s.csv}");
    EXPECT_NE(output.find(fmt::format("the nearest that has some is {};", nearest)),
              std::string::npos)
        << output;
  }
  const std::string described =
      refusal("{file: " + std::string(PIPESIM_SOURCE_DIR) + "/schedules/descriptions/zb-h1.yaml}");
  EXPECT_NE(described.find("the nearest that has some is zb;"), std::string::npos) << described;
}

// A reader counts copies of the model by the ranks that hold a stage.
TEST_F(Export, WritesNoCopiesOfTheModelThatRowsDoNotTellApart) {
  const auto exported = [this](const char* placement) {
    write("copies.yaml", fmt::format("placement: {{device: {}, copies: 2}}\n"
                                     "order: {{F: i % 2, B: i % 2}}\n"
                                     "rules:\n  - {{passes: [F], repeat: 8}}\n"
                                     "  - {{passes: [BW]}}\n",
                                     placement));
    return run("export " + quickstart_ +
               " parallel.pipeline_model_parallel_size=2 'schedule={file: copies.yaml}' "
               "batch.num_microbatches=8 --format csv -o c.csv");
  };
  const Outcome same = exported("s % p");
  EXPECT_EQ(same.code, 1) << same.output;
  EXPECT_NE(same.output.find("rows do not say which is which"), std::string::npos) << same.output;
  EXPECT_EQ(exported("s if s < p else 2*p - 1 - s").code, 0);
}

TEST_F(Export, SaysWhyThereIsNothingToWriteAndWritesNothing) {
  const Outcome flags = run("export " + quickstart_ + " schedule=gpipe --format megatron -o f.txt");
  EXPECT_EQ(flags.code, 1);
  EXPECT_NE(flags.output.find("no Megatron flags for gpipe"), std::string::npos) << flags.output;
  const Outcome csv = run("export " + quickstart_ +
                          " 'schedule={name: interleaved-1f1b, zero_bubble_table5_dependencies: "
                          "true}' -o f.csv");
  EXPECT_EQ(csv.code, 1);
  EXPECT_NE(csv.output.find("cannot express interleaved-1f1b"), std::string::npos) << csv.output;
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace pipesim::show_test
