// Every command with schedules that their author has just added: that of
// docs/how-to/add-a-schedule.md and one whose record claims nothing.
#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim {
namespace {

using testing::Outcome;

class CommandOfAnAuthor : public testing::Command {
 protected:
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return shell(std::string(PIPESIM_OF_AUTHOR) + " " + arguments);
  }
  void expect_done(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output;
  }
  void expect_both(const std::string& text) const {
    for (const char* name : {"backward-first", "without-claims"}) {
      EXPECT_NE(text.find(name), std::string::npos) << name << " is not in\n" << text;
    }
  }

  const std::string both_ = quickstart_ + " schedule='[without-claims, backward-first]'";
  const std::string each_ = quickstart_ + " schedule=";
};

TEST_F(CommandOfAnAuthor, ListsThemWithTheReasonForNoClosedForm) {
  const Outcome list = run("list");
  EXPECT_EQ(list.code, 0);
  expect_both(list.output);
  EXPECT_NE(list.output.find("bubble: no closed form: which W fills which gap"), std::string::npos);
  EXPECT_NE(list.output.find("bubble: no closed form: none is claimed"), std::string::npos);
  expect_both(run("list --format markdown").output);
}

TEST_F(CommandOfAnAuthor, DrawsThemInTheGallery) {
  expect_done("gallery -o pages");
  expect_both(read("pages/gallery.md"));
  EXPECT_NE(read("pages/gallery.md").find("Bubble no closed form: none is claimed;"),
            std::string::npos);
  EXPECT_TRUE(read("pages/gallery/without-claims.svg").starts_with("<svg "));
}

TEST_F(CommandOfAnAuthor, RunsThem) {
  const Outcome outcome = run("run " + both_ + " --devices --json run.json --csv run.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_both(outcome.output);
  expect_both(read("run.json"));
  expect_done("run " + each_ + "'{name: without-claims, recompute: full}' --devices");
  expect_done("run " + each_ + "'{name: backward-first, memory_limit: 0.75}' --devices");
}

TEST_F(CommandOfAnAuthor, ShowsReportsAndExportsThem) {
  for (const char* name : {"backward-first", "without-claims"}) {
    for (const char* format : {"picture", "text", "svg"}) {
      expect_done("show " + each_ + name + " --format " + format);
    }
    expect_done("show " + each_ + name + " --costs");
    expect_done("export " + each_ + name + " -o order.csv");
    expect_done("import order.csv");
    const Outcome flags = run("export " + each_ + name + " --format megatron");
    EXPECT_EQ(flags.code, 1);
    EXPECT_NE(flags.output.find("neither Megatron-LM nor sail-sg's zero-bubble fork has a flag"),
              std::string::npos)
        << flags.output;
  }
  expect_done("report " + both_ + " -o page.html");
  expect_done("sensitivity " + each_ + "without-claims");
}

TEST_F(CommandOfAnAuthor, SearchesAmongThem) {
  const Outcome found = run("search " + quickstart_ +
                            " parallel.pipeline_model_parallel_size=4 batch.num_microbatches=8 "
                            "--memory-limit 1 --schedules without-claims,backward-first");
  EXPECT_EQ(found.code, 0) << found.output;
}

TEST_F(CommandOfAnAuthor, PlansWithThem) {
  const Outcome plan = run(
      "plan --model zb-1.5b --cluster dgx-a100 --gpus 8 --global-batch-size 32 --seq-length 1024 "
      "--tensor 1 --micro-batch-size 2 --no-offload --wide --schedules "
      "without-claims,backward-first");
  EXPECT_EQ(plan.code, 0) << plan.output;
  EXPECT_TRUE(plan.output.find("without-claims") != std::string::npos ||
              plan.output.find("backward-first") != std::string::npos)
      << plan.output;
}

TEST_F(CommandOfAnAuthor, SweepsOverThem) {
  write("sweep.yaml",
        "schedule: [without-claims, backward-first]\nparallel: {pipeline_model_parallel_size: "
        "4}\nbatch: {num_microbatches: 8}\n"
        "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
        "sweep: {grid: {batch.num_microbatches: [4, 8]}}\n");
  expect_done("sweep sweep.yaml -o swept");
}

}  // namespace
}  // namespace pipesim
